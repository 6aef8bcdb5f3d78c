"""Whether columns fit the scales of their own group: dequantized weights, with those of other groups too, in. Pure.

Which group a column is in, `g_idx` says, or its place. A group's scales have a pattern of their own over the rows, so a
column is nearer to the baseline's with those of its group than with those of any other, whatever quantization costs; the
cosine sees the pattern alone, and no error of size. Where columns and groups were mixed up, either is as likely.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qgate.inspection.dequantize import STEP, Floats, Parts
from qgate.inspection.layers import Layer

NUM_SEEN, LEAST_ROWS = 1 << 18, 4 * STEP
"""Weights of a layer that are enough to tell: whole columns of its first rows; of fewer rows 3 bits in groups of 512 could
not be told from mixed ones."""
OF_GROUPS = frozenset({"scales", "qzeros", "weight_scale", "weight_zero_point"})
"""Tensors with an axis of groups: the first in GPTQ and AWQ, else the second."""


def first_rows(layer: Layer) -> slice | None:
    """The rows to look at; None where there is nothing to mix up."""
    size = layer.scheme.group_size
    if size is None or layer.columns < 2 * size or layer.rows < STEP or layer.scheme.bits <= 2:
        return None
    return slice(0, min(layer.rows, max(LEAST_ROWS, NUM_SEEN // layer.columns // STEP * STEP)))


def others(layer: Layer, parts: Parts) -> Iterator[Parts]:
    """The layer's tensors with the scales of the next group, of the last one and of one far away, each once."""
    num_groups = layer.columns // (layer.scheme.group_size or layer.columns)
    axis = 0 if layer.scheme.format in {"gptq", "awq"} else 1
    for step in sorted({1, num_groups // 2, num_groups - 1}):
        yield {name: np.roll(each, step, axis) if name in OF_GROUPS else each for name, each in parts.items()}


def cosines(mine: Floats, theirs: Floats) -> Floats:
    """Of each column, [columns]; both [rows, columns]."""
    size = np.sqrt(np.einsum("ij,ij->j", mine, mine))
    found: Floats = np.einsum("ij,ij->j", mine, theirs) / np.where(size > 0, size, 1)
    return found
