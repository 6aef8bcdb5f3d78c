"""Draws the breakdowns of one metric along one axis: as lines, as dots or as a heat map. Pure: a panel in, Vega-Lite out.

Breakdowns hold the levels of either arm, not their difference, so each drawing shows the baseline and its floor too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qgate.judge.units import harm
from qgate.reports.chart import colour_of, specification
from qgate.reports.words import metric_words, share
from qgate.schemas.verdict import Breakdown

CROSSED = " × "
NATS = ("kl", "garble")
MEASURED = {
    "score_loss": "score",
    "truncation_increase": "truncated share",
    "garble_nll_increase": "surprise to the baseline",
    "kl_mean": "KL from the baseline",
}
"""What the level of a metric is called, where it is not the metric's own name."""
UNITS = dict.fromkeys(("output position", "prompt length", "answer length"), "tokens")
"""The unit of an axis' labels, where they have one."""
CELL_WIDTH = 54
"""Pixels that a label such as `1024–2047` takes under a heat map."""


@dataclass(frozen=True)
class Panel:
    """The breakdowns of one metric along one axis, and how the variants are called and coloured."""

    axis: str
    metric: str
    parts: tuple[Breakdown, ...]
    names: Mapping[str, str]
    colours: Mapping[str, str]

    @property
    def along(self) -> str:
        """The axis in words."""
        return self.axis.replace("_", " ")

    @property
    def level_title(self) -> str:
        """What the levels are, with their unit; shares are shown in per cent."""
        return f"{self.measured} (nats)" if self.metric.startswith(NATS) else self.measured

    @property
    def measured(self) -> str:
        """What the levels are levels of."""
        return MEASURED.get(self.metric, metric_words(self.metric))

    def level(self, value: float | None) -> str:
        """A level in its unit."""
        return harm(self.metric, value) if self.metric.startswith(NATS) else share(value)

    def colour(self) -> dict[str, Any]:
        """The colour channel, with a legend."""
        shown = {self.names[part.variant]: self.colours.get(part.variant, "var(--v0)") for part in self.parts}
        return colour_of(shown, legend=True)


def floor_of(part: Breakdown) -> Sequence[float | None]:
    """The floor at each label; nothing where the A/A arm was not run."""
    return part.floor if len(part.floor) == len(part.labels) else (None,) * len(part.labels)


def with_unit(axis: str) -> str:
    """An axis' name, with the unit of its labels where they have one."""
    return f"{axis} ({UNITS[axis]})" if axis in UNITS else axis


def lines(panel: Panel) -> dict[str, Any]:
    """A line per variant along the axis; the baseline dashed, the floor dotted."""
    x = {**_labels(panel), "title": with_unit(panel.along), "axis": {"labelAngle": 0}}
    y = _levels(panel)
    spec = specification(_points(panel), 200)
    grey = {"type": "line", "color": "var(--v0)", "strokeWidth": 1.5}
    spec["layer"] = [
        {
            "mark": {**grey, "strokeDash": [1.5, 3]},
            "encoding": {"x": x, "y": {"field": "floor", "aggregate": "max", **y}},
        },
        {"mark": {**grey, "strokeDash": [7, 4]}, "encoding": {"x": x, "y": {"field": "base", "aggregate": "max", **y}}},
        {
            "mark": {"type": "line", "point": {"size": 50}, "strokeWidth": 2},
            "encoding": {"x": x, "y": {"field": "value", **y}, "color": panel.colour(), "tooltip": _tooltip(panel)},
        },
    ]
    return spec


def dots(panel: Panel) -> dict[str, Any]:
    """A row per label with a dot per variant; the baseline an open dot, the floor a tick."""
    y = {**_labels(panel), "title": None, "axis": {"grid": True, "domain": False, "ticks": False, "offset": 12}}
    x = _levels(panel)
    points = _points(panel)
    spec = specification(points, 32 * max(1, len({point["label"] for point in points})))
    grey = {"color": "var(--v0)", "opacity": 1}
    tick = {"type": "tick", "thickness": 2, "size": 18, **grey}
    ring = {"type": "point", "filled": False, "size": 70, **grey}
    spec["layer"] = [
        {"mark": tick, "encoding": {"y": y, "x": {"field": "floor", "aggregate": "max", **x}}},
        {"mark": ring, "encoding": {"y": y, "x": {"field": "base", "aggregate": "max", **x}}},
        {
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 0.9},
            "encoding": {"y": y, "x": {"field": "value", **x}, "color": panel.colour(), "tooltip": _tooltip(panel)},
        },
    ]
    return spec


def heat_map(panel: Panel) -> dict[str, Any]:
    """A grid per variant; a cell is as strong as it is worse than the baseline, its level stands in it."""
    cells = _cells(panel)
    across, _, down = panel.axis.partition(CROSSED)
    below = {"labelAngle": 0, "labelFontSize": 10}
    places = {
        "x": {"field": "across", "type": "ordinal", "sort": None, "title": with_unit(across), "axis": below},
        "y": {"field": "down", "type": "ordinal", "sort": None, "title": with_unit(down) or None},
    }
    strength = {"field": "harm", "type": "quantitative", "scale": {"range": [0.05, 0.65]}, "legend": None}
    cell = {"type": "rect", "fill": "var(--heat)", "stroke": "var(--surface)", "strokeWidth": 2}
    tooltip = [{"field": key} for key in ("name", "across", "down", "text", "n")]
    order = list(dict.fromkeys(entry["name"] for entry in cells))
    inner = {
        "width": CELL_WIDTH * max(4, len({entry["across"] for entry in cells})),
        "height": 34 * max(1, len({entry["down"] for entry in cells})),
        "layer": [
            {"mark": cell, "encoding": {**places, "fillOpacity": strength, "tooltip": tooltip}},
            {"mark": {"type": "text", "fontSize": 11}, "encoding": {**places, "text": {"field": "text"}}},
        ],
    }
    facet = {"field": "name", "title": None, "sort": order}
    return {**specification(cells), "columns": 3, "facet": facet, "spec": inner}


def _cells(panel: Panel) -> list[dict[str, Any]]:
    return [
        {
            "name": panel.names[part.variant],
            **dict(zip(("across", "down"), label.split(CROSSED, 1), strict=True)),
            "harm": _harm(panel.metric, value, base),
            "text": panel.level(value),
            "n": num,
        }
        for part in panel.parts
        for label, value, base, num in zip(part.labels, part.variant_values, part.baseline, part.num, strict=True)
    ]


def _points(panel: Panel) -> list[dict[str, Any]]:
    return [
        {"name": panel.names[part.variant], "label": label, "value": value, "base": base, "floor": floor, "n": num}
        for part in panel.parts
        for label, value, base, floor, num in zip(
            part.labels, part.variant_values, part.baseline, floor_of(part), part.num, strict=True
        )
    ]


def _labels(panel: Panel) -> dict[str, Any]:
    """An axis of the labels in the order in which the breakdowns give them."""
    order = list(dict.fromkeys(label for part in panel.parts for label in part.labels))
    return {"field": "label", "type": "ordinal", "sort": order}


def _levels(panel: Panel) -> dict[str, Any]:
    shown = ".2~g" if panel.metric.startswith(NATS) else ".1~%"
    return {"type": "quantitative", "title": panel.level_title, "axis": {"format": shown, "tickCount": 5}}


def _tooltip(panel: Panel) -> list[dict[str, Any]]:
    return [
        {"field": "name", "title": "variant"},
        {"field": "label", "title": panel.along},
        {"field": "value", "title": panel.measured, "format": ".3~g"},
        {"field": "n", "title": "items"},
    ]


def _harm(metric: str, value: float | None, baseline: float | None) -> float | None:
    """How much worse a level is than the baseline's; a score is worse where it is lower."""
    if value is None or baseline is None:
        return None
    return max(0.0, baseline - value if metric == "score_loss" else value - baseline)
