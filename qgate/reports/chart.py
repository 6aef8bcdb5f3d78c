"""What a chart of a report is: a Vega-Lite 6 specification, and its figures as a table. Pure: values in, values out.

Colours are CSS variables (`var(--v1)`), which the SVG renderer passes on, so that a chart follows the page's theme.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qgate.reports.words import variants_of
from qgate.schemas.recipe import BASELINE
from qgate.schemas.verdict import VerdictSheet

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
NUM_COLOURS = 8


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
    return {BASELINE: "var(--v0)"} | {name: f"var(--v{1 + place % NUM_COLOURS})" for place, name in enumerate(others)}


def colour_of(shown: Mapping[str, str], *, legend: bool) -> dict[str, Any]:
    """The colour channel for the field `name`, from the shown name of a variant to its colour."""
    scale = {"domain": list(shown), "range": list(shown.values())}
    place = {"orient": "top", "title": None} if legend else None
    return {"field": "name", "type": "nominal", "scale": scale, "legend": place}


def specification(values: list[dict[str, Any]], height: int | None = None) -> dict[str, Any]:
    """The frame of a specification; with a height it is as wide as its container."""
    frame = {} if height is None else {"width": "container", "height": height}
    return {"$schema": SCHEMA, **frame, "data": {"values": values}}
