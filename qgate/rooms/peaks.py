"""A baseline in, how far the activations of its MLPs may reach out, by the norms of its weights' rows. Reads the disk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qgate.inspection import overflow
from qgate.inspection.facts import FLOATS
from qgate.inspection.norms import norms_before
from qgate.io.survey import Survey
from qgate.io.tensor_data import some_rows
from qgate.rooms.norms import norm_weights

GATE, UP = ".gate_proj.weight", ".up_proj.weight"


def peaks(baseline: Survey) -> dict[str, float]:
    """By MLP: the largest product of gate and input that an outlier makes; only those whose norm is known."""
    found = {}
    headers = baseline.facts.headers
    for name, header in headers.items():
        if not name.endswith(GATE) or header.dtype not in FLOATS or len(header.shape) != 2:
            continue
        module, other = name.removesuffix(GATE), name.replace(GATE, UP)
        norm = next((each for each in norms_before(name.removesuffix(".weight")) if each in headers), None)
        if norm is not None and other in headers and headers[norm].shape == header.shape[1:]:
            weights = norm_weights(baseline, norm)
            found[module] = overflow.peak(_row_norms(baseline, name, weights), _row_norms(baseline, other, weights))
    return found


def _row_norms(side: Survey, name: str, columns: NDArray[np.float32]) -> NDArray[np.float32]:
    height, width = side.facts.headers[name].shape
    parts = []
    for rows in some_rows(height, width):
        values = side.data.rows(name, rows) * columns
        parts.append(np.sqrt(np.einsum("ij,ij->i", values, values)))
    return np.concatenate(parts)
