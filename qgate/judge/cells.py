"""One label of a breakdown: samples of the variant and of the floor in, a cell out; cells in, a breakdown out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import expm1

from qgate.judge.compare import Case
from qgate.judge.sample import Sample, lower_bound
from qgate.schemas.verdict import Breakdown

FEWEST_ITEMS = 5
"""A label with fewer items is shown, but nothing departs from the floor there."""


@dataclass(frozen=True)
class Cell:
    """One label of one axis: the three arms, and whether the variant leaves the floor there for sure."""

    label: str
    baseline: float | None
    variant: float | None
    floor: float | None
    num: int
    departs: bool


def harm_cell(label: str, sample: Sample, floor: Sample | None, *, departs: bool) -> Cell:
    """A cell of a harm that is a relation to the baseline, whose own value is 0."""
    return Cell(
        label=label,
        baseline=0.0 if sample.num_items else None,
        variant=value(sample),
        floor=None if floor is None else value(floor),
        num=sample.num_items,
        departs=departs,
    )


def level_cell(label: str, sample: Sample, floor: Sample | None, *, departs: bool) -> Cell:
    """A cell of a harm that is a difference of levels, which are shown: scores, shares."""
    return Cell(
        label=label,
        baseline=sample.baseline_value,
        variant=sample.other_value,
        floor=None if floor is None else floor.other_value,
        num=sample.num_items,
        departs=departs,
    )


def token_cell(case: Case, label: str, sample: Sample, floor: Sample | None, num_labels: int) -> Cell:
    """A cell of a mean over tokens, which departs where it is above the floor's own."""
    limit = 0.0 if floor is None else value(floor) or 0.0
    return harm_cell(label, sample, floor, departs=departs(case, sample, limit, num_labels))


def value(sample: Sample) -> float | None:
    """The sample's harm; None where it has no items."""
    return sample.value if sample.num_items else None


def departs(case: Case, sample: Sample, floor: float, num_labels: int) -> bool:
    """Whether the harm is above the floor for sure, corrected for the number of labels looked at (Bonferroni)."""
    if (
        sample.num_items < FEWEST_ITEMS
        or not sample.value > floor
        or not lower_bound(sample, case.alpha, case.draws) > floor
    ):
        return False  # where alpha itself does not show it, the draws that a smaller one takes are spared
    return lower_bound(sample, case.alpha / num_labels, case.draws) > floor


def assemble(variant: str, metric: str, axis: str, cells: Sequence[Cell]) -> Breakdown:
    """The breakdown of one metric along one axis, from its cells in order."""
    shown = partial(_in_unit, metric)
    return Breakdown(
        variant=variant,
        metric=metric,
        axis=axis,
        labels=tuple(cell.label for cell in cells),
        baseline=tuple(cell.baseline for cell in cells),
        variant_values=tuple(shown(cell.variant) for cell in cells),
        floor=tuple(shown(cell.floor) for cell in cells),
        num=tuple(cell.num for cell in cells),
        first_departure=next((cell.label for cell in cells if cell.departs), None),
    )


def _in_unit(metric: str, value: float | None) -> float | None:
    """A mean of ln p − ln q as the share by which the perplexity rises, which is what the criterion judges."""
    return expm1(min(value, 700.0)) if metric == "perplexity_increase" and value is not None else value
