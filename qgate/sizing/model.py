"""A checkpoint as far as its size goes: config.json, the headers of its tensors, its groups. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qgate.sizing.weights import Stored


@dataclass(frozen=True)
class Packed:
    """A tensor that a quantizer is going to make: the shape of what it stands for, the bytes that it will take."""

    shape: tuple[int, ...]
    size_bytes: int
    dtype: str = "PACKED"


@dataclass(frozen=True)
class Model:
    """A checkpoint, made or still to be made."""

    config: Mapping[str, Any]
    tensors: Mapping[str, Stored]
    shapes: Mapping[str, tuple[int, ...]]
    """Of the unquantized model's tensors: what tensor parallelism splits."""
    group_size: int | None = None
    """Columns that share a scale, where weights are grouped."""
    is_estimate: bool = False
    """Whether it is still to be made."""


def stored(config: Mapping[str, Any], tensors: Mapping[str, Stored]) -> Model:
    """A checkpoint as it lies on the disk."""
    return Model(config, tensors, {name: tensor.shape for name, tensor in tensors.items()})


def group_size_of(config: Mapping[str, Any]) -> int | None:
    """The smallest group of a quantized checkpoint, from its config.json; None where a row has one scale."""
    said = config.get("quantization_config")
    if not isinstance(said, Mapping):
        return None
    groups = said.get("config_groups")
    each = [group.get("weights") or {} for group in groups.values()] if isinstance(groups, Mapping) else [said]
    sizes = [weights.get("group_size") for weights in each]
    return min((size for size in sizes if isinstance(size, int) and size > 0), default=None)


def packed(shape: tuple[int, ...], bits: int, group_size: int | None) -> Packed:
    """A weight [rows, columns] in `bits`, with 20 bits of scale and zero point for each group (else each row)."""
    elements = shape[0] * shape[1]
    scales = elements // group_size if group_size else shape[0]
    return Packed(shape, elements * bits // 8 + scales * 5 // 2)
