"""Facts of a checkpoint, and of its baseline where there is one, in; everything that was found out. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qgate.inspection import (
    blank,
    completeness,
    config,
    ends,
    essentials,
    fields,
    group_index,
    inputs,
    kv_cache,
    membership,
    misfits,
    parallel,
    processor,
    scales,
    serving,
    shards,
    template,
    tensors,
    tokenizer,
    vocabulary,
    zero_points,
)
from qgate.inspection.facts import Facts
from qgate.inspection.layers import Layer, quantized_layers
from qgate.inspection.scheme import promise
from qgate.schemas.inspection import Finding, KernelUse, Severity

CODES = tuple(
    code
    for module in (
        shards, blank, membership, tensors, completeness, essentials, vocabulary, scales, inputs,
        zero_points, group_index, kv_cache, serving, parallel, tokenizer, template, processor, config, misfits, ends,
        fields,
    )
    for code in module.CODES
)  # fmt: skip
"""Every finding but those on weights, which `weights` has."""
GRAVITY = {severity: number for number, severity in enumerate(Severity)}


@dataclass(frozen=True)
class Found:
    """What a look at headers, settings and scales gives."""

    findings: tuple[Finding, ...]
    kernels: tuple[KernelUse, ...]
    layers: tuple[Layer, ...]


def examine(facts: Facts, baseline: Facts | None, tensor_parallel_size: int = 1) -> Found:
    """All checks but the weights' own. Where the weight files are broken, nothing is said of their tensors."""
    findings = list(shards.check(facts))
    is_whole = not any(finding.severity is Severity.ERROR for finding in findings)
    alike = baseline if baseline is not None and not config.has_another_shape(facts, baseline) else None
    promised = promise(facts.config)
    is_read = is_whole and membership.is_usable(promised) and not fields.renamed_in_quantization(facts)
    layers = quantized_layers(facts, promised, alike) if is_read else ()
    table, on_kernels = serving.check(facts, layers, tensor_parallel_size)
    if is_whole:
        findings += _of_tensors(facts, alike, layers, is_read=is_read)
    findings += on_kernels
    findings += parallel.check(layers, tensor_parallel_size)
    findings += kv_cache.check(facts, promised if is_read else None)
    findings += tokenizer.check(facts, baseline)
    findings += template.check(facts, baseline)
    findings += processor.check(facts, alike)
    findings += config.check(facts, baseline)
    findings += ends.check(facts, baseline)
    findings += fields.check(facts, baseline)
    return Found(in_order(findings), table, layers)


def _of_tensors(facts: Facts, baseline: Facts | None, layers: tuple[Layer, ...], *, is_read: bool) -> Iterator[Finding]:
    if is_read or not fields.renamed_in_quantization(facts):
        yield from membership.check(facts)
    if is_read:
        yield from tensors.check(facts, layers)
    yield from blank.check(facts, baseline)
    yield from completeness.check(facts, baseline)
    yield from vocabulary.check(facts, baseline)
    if baseline is None:
        yield from essentials.check(facts)
    yield from misfits.check(facts, layers)
    yield from scales.check(facts, layers)
    yield from inputs.check(facts, layers)
    yield from zero_points.check(facts, layers)
    yield from group_index.check(facts, layers)


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """The gravest first, otherwise as they were found."""
    return tuple(sorted(findings, key=lambda finding: GRAVITY[finding.severity]))
