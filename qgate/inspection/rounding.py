"""What rounding alone costs a layer at the scales that it was given. Pure.

A weight between two steps of size s is off by less than s/2, on average by s^2/12 squared; summed over the layer, and
over the norm of its weights, that is the relative error of round to nearest. GPTQ goes beyond it on purpose.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qgate.inspection.dequantize import Parts, order_of
from qgate.inspection.layers import Layer
from qgate.inspection.weights import Factors

Floats = NDArray[np.float32]


def squared_error(layer: Layer, parts: Parts, factors: Factors) -> float | None:
    """Expected sum of squared differences, after `factors`; None for floats, whose steps are no constant."""
    steps = _steps(layer, parts)
    if steps is None:
        return None
    columns = np.ones(layer.columns) if factors.columns is None else factors.columns.astype(np.float64) ** 2
    order = order_of(layer, parts)
    if order is None:
        order = np.arange(layer.columns) // (layer.scheme.group_size or layer.columns)
    by_group = np.bincount(order, weights=columns, minlength=steps.shape[1])
    by_row = (steps.astype(np.float64) ** 2) @ by_group / 12
    return float(by_row.sum() if factors.rows is None else (by_row * factors.rows.astype(np.float64) ** 2).sum())


def _steps(layer: Layer, parts: Parts) -> Floats | None:
    """Scales [rows, groups]."""
    if layer.scheme.is_float or layer.scheme.block is not None:
        return None
    if layer.scheme.format in {"gptq", "awq"}:
        return parts["scales"].astype(np.float32).T
    scale = parts["weight_scale"].astype(np.float32)
    return np.full((layer.rows, 1), scale.reshape(-1)[0]) if scale.size == 1 else scale.reshape(layer.rows, -1)
