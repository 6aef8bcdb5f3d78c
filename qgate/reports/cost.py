"""Quality against cost as charts: score over size and over speed. Pure: a sheet in, charts out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qgate.judge.units import number
from qgate.reports.chart import Chart, colour_of, colours, specification
from qgate.reports.words import labelled, share, size, summary_of, variants_of
from qgate.schemas.verdict import VerdictSheet


@dataclass(frozen=True)
class _Cost:
    """A figure of the summary that stands for a cost, and the side on which it is better."""

    key: str
    title: str
    better: str


COSTS = (_Cost("bits_per_weight", "Bits per weight", "left"), _Cost("tokens_per_s", "Tokens per second", "right"))


def cost_charts(sheet: VerdictSheet, precision: Mapping[str, str]) -> list[Chart]:
    """One chart per cost that is known of any variant; a point per variant, as large as its weights."""
    charts = []
    for cost in COSTS:
        names = [name for name in variants_of(sheet) if _known(summary_of(sheet, name), cost)]
        if names:
            charts.append(_chart(cost, {name: labelled(name, precision) for name in names}, sheet))
    return charts


def _known(values: Mapping[str, Any], cost: _Cost) -> bool:
    return all(isinstance(values.get(key), int | float) for key in (cost.key, "mean_score"))


def _chart(cost: _Cost, names: Mapping[str, str], sheet: VerdictSheet) -> Chart:
    points, rows = [], []
    for name, label in names.items():
        values = summary_of(sheet, name)
        point = {
            "name": label,
            "x": values[cost.key],
            "score": values["mean_score"],
            "bytes": values.get("weight_bytes"),
        }
        points.append(point)
        rows.append((label, number(point["x"]), share(point["score"]), size(point["bytes"])))
    known = colours(sheet)
    return Chart(
        id=f"cost-{cost.key}",
        title=f"Score and {cost.title.lower()}",
        caption=f"A larger point has larger weights. Up and to the {cost.better} is better.",
        spec=_drawing(cost, points, {label: known[name] for name, label in names.items()}),
        head=("Variant", cost.title, "Mean score", "Weights"),
        rows=tuple(rows),
    )


def _drawing(cost: _Cost, points: list[dict[str, Any]], shown: Mapping[str, str]) -> dict[str, Any]:
    scale = {"zero": False, "padding": 30}
    places = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "title": cost.title,
            "axis": {"tickCount": 6, "format": ",.4~r"},
            "scale": scale,
        },
        "y": {
            "field": "score",
            "type": "quantitative",
            "title": "Mean score",
            "axis": {"format": ".0%"},
            "scale": scale,
        },
        "color": colour_of(shown, legend=False),
    }
    area = {"field": "bytes", "type": "quantitative", "scale": {"range": [60, 700], "zero": True}, "legend": None}
    tooltip = [
        {"field": "name", "title": "variant"},
        {"field": "x", "title": cost.title, "format": ".3~f"},
        {"field": "score", "title": "score", "format": ".1%"},
    ]
    spec = specification(points, 260)
    spec["layer"] = [
        {
            "mark": {"type": "point", "filled": True, "opacity": 0.9},
            "encoding": {**places, "size": area, "tooltip": tooltip},
        },
        {
            "mark": {"type": "text", "dy": -20, "fontSize": 12, "fontWeight": 600},
            "encoding": {**places, "text": {"field": "name"}},
        },
    ]
    return spec
