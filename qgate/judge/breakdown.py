"""Where it breaks: every metric of every variant along every axis, and where it first leaves the floor. Touches nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qgate.judge.arms import FLOOR, Bools, Laid
from qgate.judge.axes import POSITIONS, Axis, axes_of, bucket
from qgate.judge.compare import MEAN_TOKEN_METRICS, Case
from qgate.judge.criteria import Support
from qgate.judge.harms import Harms
from qgate.judge.resample import Floats
from qgate.judge.sample import Sample, from_tokens, lower_bound, of_items
from qgate.judge.tokens import TokenTable
from qgate.schemas.verdict import Breakdown

SHOWN_AS_LEVELS = ("score_loss", "defect_rate", "truncation_increase", "garble_nll_increase")
"""Metrics of which the arms' own levels are shown (scores, shares)."""
SHOWN_AS_HARMS = ("length_drift", "flip_rate", "output_disagreement")
"""Metrics that are a relation to the baseline, whose own value is 0."""
FEWEST_ITEMS = 5
"""A label with fewer items is shown, but nothing departs from the floor there."""


@dataclass(frozen=True)
class _Cell:
    """One label of one axis: the three arms, and whether the variant leaves the floor there for sure."""

    label: str
    baseline: float | None
    variant: float | None
    floor: float | None
    num: int
    departs: bool


def break_down(case: Case, variants: Sequence[str]) -> tuple[Breakdown, ...]:
    """Every metric by axis for each variant that answered; an axis with a single label says nothing and is left out."""
    axes = axes_of(case.arms.reference.values())
    floors = _split(case.arms.pairs(FLOOR), axes)
    made: list[Breakdown] = []
    for variant in sorted(variants):
        if not case.arms.has(variant):
            continue
        parts = _split(case.arms.pairs(variant), axes)
        for axis in axes:
            labels = sorted(parts[axis.name], key=axis.order)
            if len(labels) > 1:
                made += _by_axis(case, variant, axis, parts[axis.name], floors[axis.name])
        made += _by_position(case, variant)
    return tuple(made)


def _split(laid: Laid, axes: Sequence[Axis]) -> dict[str, dict[str, Bools]]:
    """By axis and label: bool[N], which pairs have the label."""
    split = {}
    for axis in axes:
        labels = [axis.label(pair.reference or pair.row) for pair in laid.pairs]
        column = np.array(["" if label is None else f"={label}" for label in labels])
        split[axis.name] = {label: column == f"={label}" for label in set(labels) if label is not None}
    return split


def _by_axis(
    case: Case, variant: str, axis: Axis, parts: Mapping[str, Bools], floors: Mapping[str, Bools]
) -> list[Breakdown]:
    labels = sorted(parts, key=axis.order)
    made = []
    for name in (*SHOWN_AS_LEVELS, *SHOWN_AS_HARMS):
        harms, noise = case.harms(variant, name), case.harms(FLOOR, name)
        over = harms.over(noise, _difference(harms.support))
        cells = [
            _row_cell(case, name, label, (harms, over, noise), (parts[label], floors.get(label)), len(labels))
            for label in labels
        ]
        if any(cell.num for cell in cells):
            made.append(_breakdown(variant, name, axis.name, cells))
    return made


def _difference(support: Support) -> Support:
    """The range of the difference of two harms."""
    if support.open:
        return support
    width = support.greatest - support.least
    return Support(-width, width)


def _row_cell(
    case: Case,
    name: str,
    label: str,
    columns: tuple[Harms, Harms, Harms],
    inside: tuple[Bools, Bools | None],
    num_labels: int,
) -> _Cell:
    harms, over, noise = columns
    here, floor_here = inside
    sample, beyond = harms.sample(here), over.sample(here)
    floor = None if floor_here is None else noise.sample(floor_here)
    levels = name in SHOWN_AS_LEVELS
    return _Cell(
        label=label,
        baseline=sample.baseline_value if levels else _none_or(0.0, sample),
        variant=sample.other_value if levels else _none_or(sample.value, sample),
        floor=None if floor is None else floor.other_value if levels else _none_or(floor.value, floor),
        num=sample.num_items,
        departs=_departs(case, beyond, 0.0, num_labels),
    )


def _none_or(value: float, sample: Sample) -> float | None:
    return value if sample.num_items else None


def _departs(case: Case, sample: Sample, floor: float, num_labels: int) -> bool:
    """Whether the harm is above the floor for sure, corrected for the number of labels looked at (Bonferroni)."""
    if sample.num_items < FEWEST_ITEMS or not sample.value > floor:
        return False
    return lower_bound(sample, case.alpha / num_labels, case.draws) > floor


def _by_position(case: Case, variant: str) -> list[Breakdown]:
    """Token metrics by position in the answer."""
    tokens, noise = case.tokens.get(variant), case.tokens.get(FLOOR)
    if tokens is None:
        return []
    edges = (*POSITIONS, int(tokens.position.max()) + 1)
    used = [(low, high) for low, high in pairwise(edges) if ((tokens.position >= low) & (tokens.position < high)).any()]
    made = []
    for name in MEAN_TOKEN_METRICS:
        cells = [_token_cell(case, name, tokens, noise, each, len(used)) for each in used]
        made.append(_breakdown(variant, name, "output position", cells))
    return made


def _token_cell(
    case: Case, name: str, tokens: TokenTable, noise: TokenTable | None, positions: tuple[int, int], num_labels: int
) -> _Cell:
    sample = _at_positions(tokens, name, positions)
    floor = None if noise is None else _at_positions(noise, name, positions)
    floor_value = None if floor is None else _none_or(floor.value, floor)
    return _Cell(
        label=bucket(positions[0], POSITIONS),
        baseline=0.0,
        variant=_none_or(sample.value, sample),
        floor=floor_value,
        num=sample.num_items,
        departs=_departs(case, sample, floor_value or 0.0, num_labels),
    )


def _at_positions(tokens: TokenTable, name: str, positions: tuple[int, int]) -> Sample:
    harms, support = MEAN_TOKEN_METRICS[name]
    low, high = positions
    here: Floats = np.where((tokens.position >= low) & (tokens.position < high), harms(tokens), np.nan)
    sums, sizes = from_tokens(tokens, here, np.ones(len(tokens.rows), dtype=bool))
    return of_items(sums, sizes, support, int(sizes.sum()))


def _breakdown(variant: str, metric: str, axis: str, cells: Sequence[_Cell]) -> Breakdown:
    return Breakdown(
        variant=variant,
        metric=metric,
        axis=axis,
        labels=tuple(cell.label for cell in cells),
        baseline=tuple(cell.baseline for cell in cells),
        variant_values=tuple(cell.variant for cell in cells),
        floor=tuple(cell.floor for cell in cells),
        num=tuple(cell.num for cell in cells),
        first_departure=next((cell.label for cell in cells if cell.departs), None),
    )
