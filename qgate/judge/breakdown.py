"""Where it breaks: every metric of every variant along every axis, and where it first leaves the floor. Touches nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qgate.judge.arms import FLOOR, Bools, Laid, by_label
from qgate.judge.axes import Axis, axes_of
from qgate.judge.cells import assemble, departs, harm_cell, level_cell
from qgate.judge.compare import Case
from qgate.judge.positions import by_position
from qgate.judge.token_slices import by_axis
from qgate.schemas.verdict import Breakdown

SHOWN_AS_LEVELS = ("score_loss", "defect_rate", "truncation_increase", "garble_nll_increase")
"""Metrics of which the arms' own levels are shown (scores, shares)."""
SHOWN_AS_HARMS = ("length_drift", "flip_rate", "output_disagreement")


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
            if len(parts[axis.name]) > 1:
                made += _by_axis(case, variant, axis, parts[axis.name], floors[axis.name])
        made += by_axis(case, variant, axes)
        made += by_position(case, variant)
    return tuple(made)


def _split(laid: Laid, axes: Sequence[Axis]) -> dict[str, dict[str, Bools]]:
    """By axis and label, in the axis' order: bool[N], which pairs have the label."""
    return {axis.name: by_label([axis.label(pair.row) for pair in laid.pairs], axis.order) for axis in axes}


def _by_axis(
    case: Case, variant: str, axis: Axis, parts: Mapping[str, Bools], floors: Mapping[str, Bools]
) -> list[Breakdown]:
    made = []
    for metric in (*SHOWN_AS_LEVELS, *SHOWN_AS_HARMS):
        harms, noise = case.harms(variant, metric), case.harms(FLOOR, metric)
        over = harms.over(noise)
        cell_of = level_cell if metric in SHOWN_AS_LEVELS else harm_cell
        cells = [
            cell_of(
                label,
                harms.sample(inside),
                noise.sample(floors[label]) if label in floors else None,
                departs=departs(case, over.sample(inside), 0.0, len(parts)),
            )
            for label, inside in parts.items()
        ]
        if any(cell.num for cell in cells):
            made.append(assemble(variant, metric, axis.name, cells))
    return made
