"""Layers in, what serves them out: a kernel for each kind on each device, and findings where there is none. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from qgate.inspection import kernels, parallel
from qgate.inspection.codes import WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.kernels import Shape
from qgate.inspection.layers import Layer, fused_siblings
from qgate.inspection.scheme import quantization_of
from qgate.schemas.inspection import Finding, KernelUse

GROUP_SIZE_COLUMNS = Code(
    "group-size-columns",
    WARNING,
    breaks="the last group of each row is cut: no kernel of vLLM takes the layer",
    fix="quantize with a group size that divides every layer's columns",
)
ACTIVATION_ORDER = Code(
    "activation-order",
    WARNING,
    breaks="vLLM refuses desc_act in its newest versions (0.32), and runs it on Marlin or ExLlama only in older ones",
    fix="quantize with desc_act off or static order",
)
NO_KERNEL = Code(
    "no-kernel",
    WARNING,
    breaks="no kernel of vLLM takes the layer on any GPU",
    fix="choose another group size or number of bits, or ignore the layer",
)
NO_FAST_KERNEL = Code(
    "no-fast-kernel",
    WARNING,
    breaks="only slow fallback kernels take the layer",
    fix="choose a group size of 32, 64 or 128, and with AWQ zero points",
)
SPARSITY_CONFIG = Code(
    "sparsity-config",
    WARNING,
    breaks="vLLM refuses weights that are stored as sparse ones in its newest versions (0.32)",
    fix="store the weights as dense ones, and leave sparsity_config out",
)

CODES = (GROUP_SIZE_COLUMNS, ACTIVATION_ORDER, NO_KERNEL, NO_FAST_KERNEL, SPARSITY_CONFIG)
Kinds = Mapping[Shape, Sequence[str]]


def check(
    facts: Facts, layers: Sequence[Layer], tensor_parallel_size: int
) -> tuple[tuple[KernelUse, ...], list[Finding]]:
    """The table of kernels, and what is wrong with it."""
    uneven = [layer for layer in layers if layer.scheme.group_size and layer.columns % layer.scheme.group_size]
    findings = list(_group_size(uneven))
    findings += _order(layers, tensor_parallel_size)
    apart = {layer.module for layer in uneven}
    fit = [
        layer for layer in layers if layer.module not in apart and not parallel.cuts_group(layer, tensor_parallel_size)
    ]
    kinds = _kinds(facts, [layer for layer in fit if not layer.is_expert], tensor_parallel_size)
    findings += _without_kernel(kinds)
    findings += _sparse(facts)
    return tuple(_table(kinds)), findings


def _group_size(uneven: Sequence[Layer]) -> Iterator[Finding]:
    if uneven:
        first = uneven[0]
        detail = f"{first.columns} columns, groups of {first.scheme.group_size}"
        yield GROUP_SIZE_COLUMNS.at([layer.module for layer in uneven], detail)


def _order(layers: Sequence[Layer], size: int) -> Iterator[Finding]:
    ordered = [layer.module for layer in layers if layer.scheme.order == "group"]
    if ordered:
        split = f"; over {size} devices only Marlin takes the layers whose inputs are split" if size > 1 else ""
        yield ACTIVATION_ORDER.at(ordered, f"columns of one group lie apart (desc_act, or actorder group){split}")


def _sparse(facts: Facts) -> Iterator[Finding]:
    said = (quantization_of(facts.config) or {}).get("sparsity_config")
    if isinstance(said, Mapping) and (targets := said.get("targets")):
        yield SPARSITY_CONFIG.at("config.json: sparsity_config", f"format {said.get('format')}, targets {targets}")


def _kinds(facts: Facts, layers: Sequence[Layer], size: int) -> dict[Shape, list[str]]:
    """Layers that are alike once fused and split, by shape."""
    by_module = {layer.module: layer for layer in layers}
    is_half = facts.text_config.get("dtype", facts.text_config.get("torch_dtype")) != "bfloat16"
    known = dict.fromkeys(by_module, True)
    kinds: dict[Shape, list[str]] = {}
    for layer in layers:
        siblings = fused_siblings(layer.module, known)
        if siblings[0] != layer.module:
            continue
        rows = sum(by_module[module].rows for module in siblings)
        share = 1 if layer.is_replicated else size
        columns = layer.columns // share if layer.is_row_parallel else layer.columns
        shape = Shape(rows if layer.is_row_parallel else rows // share, columns, layer.columns, layer.scheme, is_half)
        kinds.setdefault(shape, []).append(layer.module)
    return kinds


def _table(kinds: Kinds) -> Iterator[KernelUse]:
    for shape, modules in kinds.items():
        for device in kernels.DEVICES:
            choice = kernels.choose(shape, device)
            if choice is not None:
                yield KernelUse(
                    device="cpu" if device is None else f"sm{device}",
                    kernel=choice.kernel,
                    is_padded=choice.is_padded,
                    rows=shape.rows,
                    columns=shape.columns,
                    num_layers=len(modules),
                    refused=choice.refused,
                )


def _without_kernel(kinds: Kinds) -> Iterator[Finding]:
    """Kinds of layer that no GPU has a kernel for, or only slow ones."""
    none, slow = Counter[str](), Counter[str]()
    why: dict[str, str] = {}
    for shape, modules in kinds.items():
        if shape.scheme.order == "group":
            continue
        choices = [choice for device in kernels.DEVICES if device and (choice := kernels.choose(shape, device))]
        chosen = {choice.kernel for choice in choices}
        for module in modules if choices else ():
            why[module] = "; ".join(f"{name} {reason}" for name, reason in choices[-1].refused.items())
            none[module] += chosen == {None}
            slow[module] += chosen != {None} and chosen <= kernels.SLOW | {None}
    for code, counts in ((NO_KERNEL, none), (NO_FAST_KERNEL, slow)):
        if places := [module for module, count in counts.items() if count]:
            yield code.at(places, why[places[0]])
