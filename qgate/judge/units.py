"""A harm in the unit that people read it in: percentage points, nats, per cent. Pure: a metric and a value in, text out.

Reasons and reports say a figure alike, so that a reader never has to turn `0.05` into `5 pp`.
"""

from __future__ import annotations

import math
from typing import Any

MISSING = "—"
POINTS = frozenset(
    {"score_loss", "worst_slice_score_loss", "defect_increase", "truncation_increase", "probability_drop"}
)
"""Metrics that are a difference of two shares or scores."""
NATS = frozenset({"kl_mean", "kl_p95", "kl_p99", "kl_p999", "garble_nll_increase"})


def number(value: Any, digits: int = 3) -> str:
    """`value` with `digits` significant digits at most; `—` where there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return MISSING
    if not math.isfinite(value):
        return str(float(value))
    if 100 <= abs(value) < 1e6:
        return f"{value:.0f}"
    short = f"{value:.{digits}g}"
    return short if "e" not in short or not 1e-6 <= abs(value) < 1 else f"{value:.{digits + 4}f}".rstrip("0")


def harm(metric: str, value: float | None) -> str:
    """A value of `metric` in its unit: percentage points, nats, or per cent."""
    if value is None or not math.isfinite(value):
        return MISSING if value is None else str(value)
    if metric in NATS:
        return f"{number(value)} nats"
    return f"{number(100 * value)} {'pp' if metric in POINTS else '%'}"


def percent(value: float | None) -> str:
    """A score or a share in per cent; `—` where there is none."""
    return MISSING if value is None else f"{number(100 * value)} %"
