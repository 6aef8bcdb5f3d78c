"""Two surveyed checkpoints in, the errors of every quantized layer out: weights streamed by rows, in threads. Reads disk.

Of each layer only some rows are held at a time, so that memory does not grow with the model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from qgate.inspection import grouping, overflow, weights
from qgate.inspection.dequantize import STEP, is_read, rows_of
from qgate.inspection.facts import FLOATS
from qgate.inspection.layers import Layer
from qgate.inspection.norms import NEXT
from qgate.inspection.packing import expected
from qgate.inspection.rounding import squared_error
from qgate.inspection.scheme import quantization_of
from qgate.inspection.vocabulary import EMBEDDING, tied
from qgate.inspection.weights import Factors
from qgate.io.survey import Survey
from qgate.io.tensor_data import some_rows
from qgate.rooms.norms import both_norms
from qgate.rooms.peaks import peaks
from qgate.rooms.plain import difference, from_baseline, shared
from qgate.schemas.inspection import Finding, LayerError

Floats = NDArray[np.float32]
HEAD = "lm_head.weight"


@dataclass(frozen=True)
class Weighed:
    """What the weights say."""

    errors: tuple[LayerError, ...]
    """Largest first."""
    findings: tuple[Finding, ...]


@dataclass
class Pair:
    """The checkpoint, its baseline, and the factors that move scales back, by layer."""

    mine: Survey
    theirs: Survey
    factors: dict[str, Factors] = field(default_factory=dict)
    zero_step: int = 1


def weigh(mine: Survey, theirs: Survey, layers: tuple[Layer, ...]) -> Weighed:
    """Compare every layer that the baseline has in the same size, and the tensors that were not quantized."""
    said = quantization_of(mine.facts.config) or {}
    if said.get("transform_config"):
        return Weighed(
            (), (weights.WEIGHTS_NOT_COMPARED.at("config.json: transform_config", "the weights were rotated"),)
        )
    known = [layer for layer in layers if is_read(layer) and _is_alike(layer, theirs)]
    pair = Pair(mine, theirs, zero_step=0 if said.get("checkpoint_format") == "gptq_v2" else 1)
    for layer in known:
        pair.factors[layer.module] = _of_norm(layer, pair)
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="weigh") as pool:
        errors = dict(
            zip((layer.module for layer in known), pool.map(lambda layer: _error(layer, pair), known), strict=True)
        )
        for two in _fold(known, errors, pair):
            again = {
                layer.module: error
                for layer, error in zip(two, pool.map(lambda each: _error(each, pair), two), strict=True)
            }
            if all(error.relative_error < errors[module].relative_error for module, error in again.items()):
                errors |= again
        strays = dict(pool.map(lambda layer: (layer.module, _strays(layer, pair)), known))
        plain = dict(pool.map(lambda name: (name, from_baseline(name, mine, theirs)), shared(mine, theirs)))
    in_order = tuple(sorted(errors.values(), key=lambda error: -error.relative_error))
    left = [layer.module for layer in layers if layer.module not in errors]
    findings = [*weights.check(in_order, known, strays), *weights.check_plain(plain), *_untied(mine)]
    if overflow.is_cast(mine.facts, theirs.facts):
        findings += overflow.check(peaks(theirs))
    if left:
        findings.append(weights.WEIGHTS_NOT_COMPARED.at(left, "its format, or the baseline's size, is another one"))
    return Weighed(in_order, tuple(findings))


def _is_alike(layer: Layer, theirs: Survey) -> bool:
    header = theirs.facts.headers.get(f"{layer.module}.weight")
    return header is not None and header.dtype in FLOATS and header.shape == (layer.rows, layer.columns)


def _parts(layer: Layer, pair: Pair) -> dict[str, NDArray[np.generic]]:
    """The layer's stored tensors by their short names."""
    data = pair.mine.data
    names = {each.name: each.stored(layer.module, data.tensors) for each in expected(layer)}
    return {name: data.decoded(stored) for name, stored in names.items() if stored is not None}


def _chunks(layer: Layer, pair: Pair) -> Iterator[tuple[slice, Floats, Floats]]:
    """Rows, the checkpoint's weights and the baseline's."""
    parts = _parts(layer, pair)
    for rows in some_rows(layer.rows, layer.columns, STEP):
        theirs = pair.theirs.data.rows(f"{layer.module}.weight", rows)
        yield rows, rows_of(layer, parts, rows, pair.zero_step), theirs


def _error(layer: Layer, pair: Pair) -> LayerError:
    factors = pair.factors[layer.module]
    with np.errstate(over="ignore", invalid="ignore"):
        sums = [weights.compare(mine, theirs, factors.of(rows)) for rows, mine, theirs in _chunks(layer, pair)]
        return weights.layer_error(layer.module, sums, squared_error(layer, _parts(layer, pair), factors))


def _strays(layer: Layer, pair: Pair) -> float:
    """The share of columns that are nearer to the baseline's with the scales of another group."""
    if (rows := grouping.first_rows(layer)) is None:
        return 0.0
    parts, theirs = _parts(layer, pair), pair.theirs.data.rows(f"{layer.module}.weight", rows)
    own, *others = (
        grouping.cosines(rows_of(layer, each, rows, pair.zero_step), theirs)
        for each in (parts, *grouping.others(layer, parts))
    )
    return float(np.mean([other > own for other in others]))


def _of_norm(layer: Layer, pair: Pair) -> Factors:
    """The weights of the norm that feeds the layer, on both sides."""
    found = both_norms(layer.module, pair.mine, pair.theirs)
    fits = found is not None and found[0].shape == (layer.columns,) and not np.array_equal(*found)
    return Factors(None, *found) if found is not None and fits else Factors()


def _fold(layers: list[Layer], errors: Mapping[str, LayerError], pair: Pair) -> list[tuple[Layer, Layer]]:
    """Layers whose rows and next layer's columns were scaled against each other; notes the factors."""
    by_module = {layer.module: layer for layer in layers}
    moved = []
    for layer in layers:
        parent, _, name = layer.module.rpartition(".")
        after = by_module.get(f"{parent}.{NEXT.get(name, '')}")
        if after is None or after.columns != layer.rows or errors[after.module].relative_error < weights.OUTLIER_LEAST:
            continue
        rows, columns = _fit(layer, pair, axis=1), _fit(after, pair, axis=0)
        if weights.are_folded(rows, columns):
            pair.factors[layer.module] = replace(pair.factors[layer.module], rows=rows)
            pair.factors[after.module] = Factors(columns=np.float32(1) / rows)
            moved.append((layer, after))
    return moved


def _fit(layer: Layer, pair: Pair, axis: int) -> Floats:
    """Factors of all rows (axis 1), or of all columns from as many rows as one step holds (axis 0)."""
    found = []
    factors = pair.factors[layer.module]
    for rows, mine, theirs in _chunks(layer, pair):
        found.append(weights.fit(mine, theirs, factors.of(rows), axis))
        if axis == 0:
            return found[0]
    return np.concatenate(found)


def _untied(mine: Survey) -> Iterator[Finding]:
    """An output layer that is stored beside the embedding, which engines use in its place, and is another one."""
    headers, embedding = mine.facts.headers, next(filter(EMBEDDING.match, mine.facts.headers), None)
    if not tied(mine.facts) or embedding is None or HEAD not in headers:
        return
    if headers[HEAD].shape == headers[embedding].shape and {headers[HEAD].dtype, headers[embedding].dtype} <= FLOATS:
        apart = difference((mine, HEAD), (mine, embedding))
        if not apart <= weights.PLAIN_LIMIT:
            yield weights.HEAD_UNTIED.at(HEAD, f"relative difference from {embedding} {apart:.3g}")
