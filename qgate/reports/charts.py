"""Charts of a report as Vega-Lite 6 specifications, each with its figures as a table. Pure: a sheet in, charts out.

Colours are CSS variables (`var(--v1)`), which the SVG renderer passes on, so that a chart follows the page's theme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qgate.reports.words import harm, labelled, metric_words, number, share, size, summary_of, variants_of
from qgate.schemas.recipe import BASELINE
from qgate.schemas.verdict import Breakdown, VerdictSheet

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
NUM_COLOURS = 8
CROSSED = " × "
NATS = ("kl", "garble")
ORDERED = ("position", "length", "temperature", "severity", "difficulty", "depth")
METRICS = ("kl_mean", "top1_disagreement", "score_loss", "defect_rate")
AXES = ("output position", "prompt length", "prompt length × temperature", "temperature", "noise", "language")
"""What is shown at once; every other metric and axis of the sheet is one click away."""
MEASURED = {
    "score_loss": "score",
    "truncation_increase": "truncated share",
    "garble_nll_increase": "surprise to the baseline",
    "kl_mean": "KL from the baseline",
}
"""Breakdowns hold levels of either arm, not differences: what a metric's level is called."""


@dataclass(frozen=True)
class Chart:
    """A chart, what it says in words, and the figures behind it."""

    id: str
    title: str
    caption: str
    spec: dict[str, Any]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    primary: bool = True
    """Whether it is shown at once, or only when asked for."""


def colours(sheet: VerdictSheet) -> dict[str, str]:
    """Variant name to CSS colour; the same in every chart, the baseline grey."""
    others = [name for name in variants_of(sheet) if name != BASELINE]
    found = {name: f"var(--v{1 + index % NUM_COLOURS})" for index, name in enumerate(others)}
    return {BASELINE: "var(--v0)", **found}


def cost_charts(sheet: VerdictSheet, precision: Mapping[str, str]) -> list[Chart]:
    """Score against bits per weight and against speed; one point per variant, as large as its weights."""
    axes = (
        ("bits_per_weight", "Bits per weight", "left", number),
        ("tokens_per_s", "Tokens per second", "right", number),
    )
    return [
        _cost_chart(sheet, precision, key, title, hint, shown)
        for key, title, hint, shown in axes
        if any(_known(sheet, name, key) for name in variants_of(sheet))
    ]


def _known(sheet: VerdictSheet, name: str, key: str) -> bool:
    values = summary_of(sheet, name)
    return isinstance(values.get(key), int | float) and isinstance(values.get("mean_score"), int | float)


def _cost_chart(
    sheet: VerdictSheet, precision: Mapping[str, str], key: str, title: str, hint: str, shown: Any
) -> Chart:
    names = [name for name in variants_of(sheet) if _known(sheet, name, key)]
    points, rows = [], []
    for name in names:
        values = summary_of(sheet, name)
        label = labelled(name, precision)
        points.append(
            {"name": label, "x": values[key], "score": values["mean_score"], "bytes": values.get("weight_bytes") or 0}
        )
        rows.append((label, shown(values[key]), share(values["mean_score"]), size(values.get("weight_bytes"))))
    base = {
        "x": {"field": "x", "type": "quantitative", "title": title, "scale": {"zero": False, "padding": 24}},
        "y": {
            "field": "score", "type": "quantitative", "title": "Mean score",
            "axis": {"format": ".0%"}, "scale": {"zero": False, "padding": 24},
        },
    }  # fmt: skip
    colour = _colour(names, sheet, precision, legend=False)
    tooltip = [
        {"field": "name", "title": "variant"},
        {"field": "x", "title": title, "format": ".3~f"},
        {"field": "score", "title": "score", "format": ".1%"},
    ]
    area = {"field": "bytes", "type": "quantitative", "scale": {"range": [60, 700], "zero": True}, "legend": None}
    mark = {"type": "point", "filled": True, "opacity": 0.9}
    name_mark = {"type": "text", "dy": -20, "fontSize": 12, "fontWeight": 600}
    spec = _spec(points, 260)
    spec["layer"] = [
        {"mark": mark, "encoding": {**base, "color": colour, "size": area, "tooltip": tooltip}},
        {"mark": name_mark, "encoding": {**base, "color": colour, "text": {"field": "name"}}},
    ]
    caption = f"Mean score against {title.lower()}; a larger point has larger weights. Up and to the {hint} is better."
    head = ("Variant", title, "Mean score", "Weights")
    return Chart(f"cost-{key}", f"Score and {title.lower()}", caption, spec, head, tuple(rows))


def damage_charts(sheet: VerdictSheet, precision: Mapping[str, str]) -> list[Chart]:
    """One chart per axis and metric of the breakdowns, those that are shown at once first."""
    groups: dict[tuple[str, str], list[Breakdown]] = {}
    for breakdown in sheet.breakdowns:
        groups.setdefault((breakdown.axis, breakdown.metric), []).append(breakdown)
    charts = []
    for index, ((axis, metric), parts) in enumerate(sorted(groups.items(), key=_importance)):
        measured, along = measured_words(metric), axis.replace("_", " ")
        head = ("Variant", along.capitalize(), "Variant's", "Baseline's", "Floor", "Items")
        title = f"{measured[:1].upper()}{measured[1:]} by {along}"
        spec = _drawing(axis)(axis, metric, parts, sheet, precision)
        primary = metric in METRICS and axis in AXES
        rows = _figures(metric, parts, precision)
        charts.append(Chart(f"damage-{index}", title, _departures(parts), spec, head, rows, primary))
    return charts


def measured_words(metric: str) -> str:
    """What a breakdown of `metric` measures, in words."""
    return MEASURED.get(metric, metric_words(metric))


def _importance(group: tuple[tuple[str, str], Any]) -> tuple[bool, int, str, int, str]:
    (axis, metric), _ = group
    place = AXES.index(axis) if axis in AXES else len(AXES)
    rank = METRICS.index(metric) if metric in METRICS else len(METRICS)
    return (not (metric in METRICS and axis in AXES), place, axis, rank, metric)


def _level(metric: str, value: float | None) -> str:
    return harm(metric, value) if metric.startswith(NATS) else share(value)


def _drawing(axis: str) -> Any:
    """Lines where the axis has an order, dots where it has none, a heat map where two axes are crossed."""
    if CROSSED in axis:
        return _heat_map
    return _lines if any(word in axis for word in ORDERED) else _dots


def _departures(parts: Sequence[Breakdown]) -> str:
    left = [f"{part.variant} from {part.first_departure}" for part in parts if part.first_departure is not None]
    return f"Leaves the noise floor: {', '.join(left)}." if left else "No variant leaves the noise floor."


def _figures(metric: str, parts: Sequence[Breakdown], precision: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            labelled(part.variant, precision),
            label,
            *(_level(metric, level) for level in (value, baseline, floor)),
            str(num),
        )
        for part in parts
        for label, value, baseline, floor, num in zip(
            part.labels, part.variant_values, part.baseline, _floor(part), part.num, strict=True
        )
    )


def _floor(part: Breakdown) -> Sequence[float | None]:
    return part.floor if len(part.floor) == len(part.labels) else (None,) * len(part.labels)


def _lines(
    axis: str, metric: str, parts: Sequence[Breakdown], sheet: VerdictSheet, precision: Mapping[str, str]
) -> dict[str, Any]:
    """A line per variant along the axis; the baseline dashed, the floor dotted."""
    x = {**_labels(parts), "title": axis.replace("_", " "), "axis": {"labelAngle": 0}}
    y = {"type": "quantitative", "title": measured_words(metric), "axis": {"format": _format(metric)}}
    colour = _colour([part.variant for part in parts], sheet, precision, legend=True)
    spec = _spec(_points(parts, precision), 200)
    grey = {"type": "line", "color": "var(--v0)", "strokeWidth": 1.5}
    spec["layer"] = [
        {
            "mark": {**grey, "strokeDash": [1.5, 3]},
            "encoding": {"x": x, "y": {"field": "floor", "aggregate": "max", **y}},
        },
        {"mark": {**grey, "strokeDash": [7, 4]}, "encoding": {"x": x, "y": {"field": "base", "aggregate": "max", **y}}},
        {
            "mark": {"type": "line", "point": {"size": 50}, "strokeWidth": 2},
            "encoding": {"x": x, "y": {"field": "value", **y}, "color": colour, "tooltip": _tooltip(axis, metric)},
        },
    ]
    return spec


def _dots(
    axis: str, metric: str, parts: Sequence[Breakdown], sheet: VerdictSheet, precision: Mapping[str, str]
) -> dict[str, Any]:
    """A row per label with a dot per variant; the baseline an open dot, the floor a tick."""
    y = {**_labels(parts), "title": None, "axis": {"grid": True, "domain": False, "ticks": False, "offset": 12}}
    x = {"type": "quantitative", "title": measured_words(metric), "axis": {"format": _format(metric)}}
    colour = _colour([part.variant for part in parts], sheet, precision, legend=True)
    points = _points(parts, precision)
    spec = _spec(points, 32 * max(1, len({point["label"] for point in points})))
    grey = {"color": "var(--v0)", "opacity": 1}
    spec["layer"] = [
        {
            "mark": {"type": "tick", "thickness": 2, "size": 18, **grey},
            "encoding": {"y": y, "x": {"field": "floor", "aggregate": "max", **x}},
        },
        {
            "mark": {"type": "point", "filled": False, "size": 70, **grey},
            "encoding": {"y": y, "x": {"field": "base", "aggregate": "max", **x}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 0.9},
            "encoding": {"y": y, "x": {"field": "value", **x}, "color": colour, "tooltip": _tooltip(axis, metric)},
        },
    ]
    return spec


def _points(parts: Sequence[Breakdown], precision: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "name": labelled(part.variant, precision),
            "label": label,
            "value": value,
            "base": base,
            "floor": floor,
            "n": n,
        }
        for part in parts
        for label, value, base, floor, n in zip(
            part.labels, part.variant_values, part.baseline, _floor(part), part.num, strict=True
        )
    ]


def _labels(parts: Sequence[Breakdown]) -> dict[str, Any]:
    """An axis of the labels in the order in which the breakdowns give them."""
    order = list(dict.fromkeys(label for part in parts for label in part.labels))
    return {"field": "label", "type": "ordinal", "sort": order}


def _tooltip(axis: str, metric: str) -> list[dict[str, Any]]:
    return [
        {"field": "name", "title": "variant"},
        {"field": "label", "title": axis.replace("_", " ")},
        {"field": "value", "title": measured_words(metric), "format": ".3~g"},
        {"field": "n", "title": "n"},
    ]


def _heat_map(
    axis: str, metric: str, parts: Sequence[Breakdown], sheet: VerdictSheet, precision: Mapping[str, str]
) -> dict[str, Any]:
    """A panel per variant; a cell is as strong as it is worse than the baseline, its level stands in it."""
    rows_axis, _, columns_axis = axis.partition(CROSSED)
    data = [
        {
            "name": labelled(part.variant, precision),
            **dict(zip(("row", "column"), label.split(CROSSED, 1), strict=True)),
            "harm": _harm(metric, value, base),
            "text": _level(metric, value),
            "n": num,
        }
        for part in parts
        for label, value, base, num in zip(part.labels, part.variant_values, part.baseline, part.num, strict=True)
    ]
    places = {
        "x": {"field": "row", "type": "ordinal", "sort": None, "title": rows_axis, "axis": {"labelAngle": 0}},
        "y": {"field": "column", "type": "ordinal", "sort": None, "title": columns_axis or None},
    }
    strength = {"field": "harm", "type": "quantitative", "scale": {"range": [0.05, 0.65]}, "legend": None}
    cell = {"type": "rect", "fill": "var(--heat)", "stroke": "var(--surface)", "strokeWidth": 2}
    order = list(dict.fromkeys(entry["name"] for entry in data))
    tooltip = [{"field": key} for key in ("name", "row", "column", "text", "n")]
    spec = _spec(data, 34 * max(1, len({entry["column"] for entry in data})))
    inner = {
        "width": 220,
        "height": spec.pop("height"),
        "layer": [
            {"mark": cell, "encoding": {**places, "fillOpacity": strength, "tooltip": tooltip}},
            {"mark": {"type": "text", "fontSize": 11}, "encoding": {**places, "text": {"field": "text"}}},
        ],
    }
    del spec["width"]
    return {**spec, "columns": 3, "facet": {"field": "name", "title": None, "sort": order}, "spec": inner}


def _harm(metric: str, value: float | None, baseline: float | None) -> float | None:
    """How much worse a level is than the baseline's; a score is worse where it is lower."""
    if value is None or baseline is None:
        return None
    return max(0.0, baseline - value if metric == "score_loss" else value - baseline)


def _format(metric: str) -> str:
    return ".2~g" if metric.startswith(NATS) else ".1~%"


def _colour(names: Sequence[str], sheet: VerdictSheet, precision: Mapping[str, str], *, legend: bool) -> dict[str, Any]:
    known = colours(sheet)
    scale = {
        "domain": [labelled(name, precision) for name in names],
        "range": [known.get(name, "var(--v0)") for name in names],
    }
    place = {"orient": "top", "title": None, "columns": 3} if legend else None
    return {"field": "name", "type": "nominal", "scale": scale, "legend": place}


def _spec(values: list[dict[str, Any]], height: int) -> dict[str, Any]:
    return {"$schema": SCHEMA, "width": "container", "height": height, "data": {"values": values}}
