"""Places a criterion's estimate, interval, floor and margin on the one axis that all criteria share. Pure.

A position is the harm in units of the margin: 0 is no harm, 1 the margin. A margin of 0 has no unit: there the largest
of the criterion's own numbers is the unit, and no harm lies at 1, since none is all that is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from qgate.schemas.verdict import CriterionResult, Estimate

LEFT, RIGHT = -1.0, 3.0
"""Ends of the axis; what lies beyond is drawn at the end, as an arrow."""


@dataclass(frozen=True)
class Span:
    """An interval on the axis, and whether its ends lie beyond it."""

    low: float
    high: float
    beyond_low: bool
    beyond_high: bool


@dataclass(frozen=True)
class Strip:
    """Shares of the axis' width, 0 to 1; None where there is no such number."""

    margin: float
    zero: float
    value: float | None
    interval: Span | None
    floor: Span | None


def place(criterion: CriterionResult) -> Strip:
    """Where everything of `criterion` lies."""
    margin, unit = criterion.margin, _unit(criterion)
    value = criterion.estimate.value
    return Strip(
        margin=_share(1.0),
        zero=_share(_position(0.0, margin, unit)),
        value=None if value is None or math.isnan(value) else _share(_position(value, margin, unit)),
        interval=_span(criterion.estimate, margin, unit),
        floor=None if criterion.floor is None else _span(criterion.floor, margin, unit),
    )


def _unit(criterion: CriterionResult) -> float:
    if criterion.margin > 0 and math.isfinite(criterion.margin):
        return criterion.margin
    known = [criterion.estimate.low, criterion.estimate.value, criterion.estimate.high]
    sizes = [abs(number) for number in known if number is not None and math.isfinite(number)]
    return max(sizes, default=0.0) or 1.0


def _position(harm: float, margin: float, unit: float) -> float:
    """In units of the margin; an endless harm against an endless margin lies on it."""
    position = 1.0 + (harm - margin) / unit
    return 1.0 if math.isnan(position) else position


def _share(position: float) -> float:
    return (min(max(position, LEFT), RIGHT) - LEFT) / (RIGHT - LEFT)


def _span(estimate: Estimate, margin: float, unit: float) -> Span | None:
    if estimate.low is None or estimate.high is None or math.isnan(estimate.low) or math.isnan(estimate.high):
        return None
    low, high = (_position(bound, margin, unit) for bound in (estimate.low, estimate.high))
    return Span(low=_share(low), high=_share(high), beyond_low=low < LEFT, beyond_high=high > RIGHT)
