"""Tensors that were not quantized in, how far each is from the baseline's out: whole ones, some rows at a time. Reads disk.

Beside quantized layers scales may have been moved into them too: a layer that a norm feeds is compared as its product
with the norm's weights, one that another layer feeds up to a factor per column, and one that feeds such a layer per row.
"""

from __future__ import annotations

import numpy as np

from qgate.inspection.facts import FLOATS
from qgate.inspection.layers import IN_LAYER
from qgate.inspection.norms import NEXT, NORM, is_scaled, offset
from qgate.inspection.scheme import quantization_of
from qgate.io.survey import Survey
from qgate.io.tensor_data import some_rows
from qgate.rooms.norms import Floats, both_norms


def shared(mine: Survey, theirs: Survey) -> list[str]:
    """Plain vectors and matrices of one shape in both, but for vectors that scales may have been moved into."""
    headers, others = mine.facts.headers, theirs.facts.headers
    is_quantized = quantization_of(mine.facts.config) is not None
    return [
        name
        for name, header in headers.items()
        if (other := others.get(name)) is not None
        if header.shape == other.shape and len(header.shape) in {1, 2} and {header.dtype, other.dtype} <= FLOATS
        if not (is_quantized and IN_LAYER.match(name) and (len(header.shape) == 1 and is_scaled(name)))
    ]


def from_baseline(name: str, mine: Survey, theirs: Survey) -> float:
    """Relative to the baseline's tensor; what moved scales explain does not count."""
    is_matrix = len(mine.facts.headers[name].shape) == 2
    if is_matrix and IN_LAYER.match(name) and quantization_of(mine.facts.config) is not None:
        return _but_for_scales(name, mine, theirs)
    return difference((mine, name), (theirs, name))


def _but_for_scales(name: str, mine: Survey, theirs: Survey) -> float:
    module = name.removesuffix(".weight")
    height, width = mine.facts.headers[name].shape
    norms = both_norms(module, mine, theirs)
    if norms is not None and norms[0].shape != (width,):
        norms = None
    is_by_row = module.rpartition(".")[2] in NEXT
    sums = np.zeros((3, height if is_by_row else width))
    for rows in some_rows(height, width):
        one, other = mine.data.rows(name, rows), theirs.data.rows(name, rows)
        if norms is not None:
            one, other = one * norms[0], other * norms[1]
        if is_by_row:
            sums[:, rows] = _products(one, other, "ij,ij->i")
        else:
            sums += _products(one, other, "ij,ij->j")
    square, dot, base = sums
    whole, is_exact = base.sum(), norms is not None and not is_by_row
    with np.errstate(over="ignore", invalid="ignore"):
        explained = 2 * dot - square if is_exact else dot**2 / np.where(square > 0, square, 1)
        error = np.maximum((base - explained).sum(), 0.0)
    return float(np.sqrt(error / whole)) if whole > 0 else float(np.sqrt(square.sum()))


def _products(one: Floats, other: Floats, axes: str) -> Floats:
    """Of the first with itself, of both, and of the second with itself, each summed along the rows or columns."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.stack([np.einsum(axes, *pair) for pair in ((one, one), (one, other), (other, other))])


def difference(first: tuple[Survey, str], second: tuple[Survey, str]) -> float:
    """Of two tensors of one shape, relative to the second, as it multiplies where it is a norm's."""
    (mine, name), (theirs, known) = first, second
    more = np.float32(offset(theirs.facts.text_config) if NORM.search(known) else 0)
    height, width = (*mine.facts.headers[name].shape, 1)[:2]
    error = base = 0.0
    for rows in some_rows(height, width):
        wanted = theirs.data.rows(known, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = wanted - mine.data.rows(name, rows)
            error += float(np.vdot(apart, apart))
        base += float(np.vdot(wanted + more, wanted + more))
    return float(np.sqrt(error / base)) if base > 0 else float(np.sqrt(error))
