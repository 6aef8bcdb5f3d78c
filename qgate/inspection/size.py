"""Bytes and parameters in, bits per weight out: as stored, and as the scheme says. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from qgate.inspection.facts import Facts
from qgate.inspection.layers import Layer
from qgate.inspection.packing import expected
from qgate.inspection.scales import SCALE


@dataclass(frozen=True)
class Size:
    """What a checkpoint takes."""

    weight_bytes: int
    bits_per_weight: float | None
    """Over all parameters: packed weights count unpacked, scales and the like as bytes only; None without any."""
    quantized_bits_per_weight: float | None
    """Over the quantized layers alone; None where there are none."""
    nominal_bits: float | None
    """Mean width that the schemes say, over the quantized layers; None where there are none."""


def measure(facts: Facts, layers: Sequence[Layer]) -> Size:
    """The size of everything that is stored."""
    total = sum(header.size_bytes for header in facts.headers.values())
    quantized = {layer.module: layer.rows * layer.columns for layer in layers}
    beside = {f"{layer.module}.{name}" for layer in layers for each in expected(layer) for name in each.names}
    plain = sum(
        math.prod(header.shape)
        for name, header in facts.headers.items()
        if name not in beside and not SCALE.search(name)
    )
    parameters, inside = plain + sum(quantized.values()), sum(quantized.values())
    of_layers = sum(facts.headers[name].size_bytes for name in beside if name in facts.headers)
    return Size(
        weight_bytes=total,
        bits_per_weight=8 * total / parameters if parameters else None,
        quantized_bits_per_weight=8 * of_layers / inside if inside else None,
        nominal_bits=sum(layer.scheme.bits * layer.rows * layer.columns for layer in layers) / inside
        if inside
        else None,
    )
