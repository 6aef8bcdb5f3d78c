"""Where the damage lies, as charts: output position, prompt length, temperature, noise. Pure: a sheet in, charts out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qgate.reports.chart import Chart, colours
from qgate.reports.draw import CROSSED, Panel, dots, floor_of, heat_map, lines
from qgate.reports.words import labelled, variants_of
from qgate.schemas.verdict import Breakdown, VerdictSheet

ORDERED = ("position", "length", "temperature", "severity", "difficulty", "depth")
METRICS = ("kl_mean", "top1_disagreement", "score_loss", "defect_rate")
AXES = ("output position", "prompt length", "prompt length × temperature", "temperature", "noise", "language")
"""What is shown at once; every other metric and axis of the sheet is one click away."""


def damage_charts(sheet: VerdictSheet, precision: Mapping[str, str]) -> list[Chart]:
    """One chart per axis and metric of the breakdowns, those that are shown at once first."""
    groups: dict[tuple[str, str], list[Breakdown]] = {}
    order = {name: place for place, name in enumerate(variants_of(sheet))}
    for breakdown in sorted(sheet.breakdowns, key=lambda part: order.get(part.variant, len(order))):
        groups.setdefault((breakdown.axis, breakdown.metric), []).append(breakdown)
    known = colours(sheet)
    charts = []
    for place, (axis, metric) in enumerate(sorted(groups, key=_importance)):
        parts = tuple(groups[axis, metric])
        names = {part.variant: labelled(part.variant, precision) for part in parts}
        charts.append(_chart(f"damage-{place}", Panel(axis, metric, parts, names, known)))
    return charts


def _chart(name: str, panel: Panel) -> Chart:
    return Chart(
        id=name,
        title=f"{panel.measured[:1].upper()}{panel.measured[1:]} by {panel.along}",
        caption=_departures(panel.parts),
        spec=_drawing(panel)(panel),
        head=("Variant", panel.along.capitalize(), "Variant's", "Baseline's", "Floor", "Items"),
        rows=_figures(panel),
        primary=_is_primary(panel.axis, panel.metric),
    )


def _is_primary(axis: str, metric: str) -> bool:
    return metric in METRICS and axis in AXES


def _importance(group: tuple[str, str]) -> tuple[bool, int, str, int, str]:
    axis, metric = group
    place = AXES.index(axis) if axis in AXES else len(AXES)
    rank = METRICS.index(metric) if metric in METRICS else len(METRICS)
    return (not _is_primary(axis, metric), place, axis, rank, metric)


def _drawing(panel: Panel) -> Callable[[Panel], dict[str, Any]]:
    """Lines where the axis has an order, dots where it has none, a heat map where two axes are crossed."""
    if CROSSED in panel.axis and all(CROSSED in label for part in panel.parts for label in part.labels):
        return heat_map
    return lines if any(word in panel.axis for word in ORDERED) else dots


def _departures(parts: Sequence[Breakdown]) -> str:
    left = [f"{part.variant} from {part.first_departure}" for part in parts if part.first_departure is not None]
    return f"Leaves the noise floor: {', '.join(left)}." if left else "No variant leaves the noise floor."


def _figures(panel: Panel) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (panel.names[part.variant], label, *(panel.level(level) for level in levels), str(num))
        for part in panel.parts
        for label, num, *levels in zip(
            part.labels, part.num, part.variant_values, part.baseline, floor_of(part), strict=True
        )
    )
