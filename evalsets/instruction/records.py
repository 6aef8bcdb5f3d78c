"""Facts about fictional ferries to be put into JSON, a table or YAML. Touches nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dice import Dice
from writing import Draft

Check = tuple[str, dict[str, Any]]

SHAPES = {
    "en": "flat:3 nested:2 list:3 sorted:3 table:4 table-sorted:3 yaml:2",
    "zh": "flat:2 nested:1 list:2 sorted:1 table:2 table-sorted:1 yaml:1",
} | dict.fromkeys(("ja", "ar", "ru", "es", "th"), "flat:1 table:1")
"""Language to shapes, with the number of items each."""

LEVEL = {"flat": 1, "nested": 3, "list": 3, "sorted": 5, "table": 3, "table-sorted": 4, "yaml": 2}
NUM_FERRIES = {"list": 3, "sorted": 4, "table": 3, "table-sorted": 4}


@dataclass(frozen=True)
class Ferry:
    """One record; all of it is invented."""

    name: str
    place: str
    time: str
    pier: int
    seats: int


def ferries(texts: dict[str, Any], dice: Dice, num: int) -> list[Ferry]:
    """`num` ferries with different names, times and numbers of seats."""
    names, seats = dice.several(texts["names"], num), dice.several(range(40, 200, 5), num)
    hours = dice.several(range(6, 22), num)
    return [
        Ferry(name, dice.pick(texts["places"]), f"{hour:02d}:{dice.between(1, 11) * 5:02d}", dice.between(1, 9), seat)
        for name, hour, seat in zip(names, hours, seats, strict=True)
    ]


def facts(texts: dict[str, Any], fleet: list[Ferry]) -> str:
    """The ferries in words."""
    return "\n".join(texts["fact"].format(**vars(ferry)) for ferry in fleet)


def drafts(language: str, texts: dict[str, Any]) -> Iterator[Draft]:
    """The items of one language."""
    said = texts["records"]
    for entry in SHAPES[language].split():
        shape, _, times = entry.partition(":")
        for number in range(1, int(times) + 1):
            item = f"{language}-{shape}-{number}"
            dice = Dice(f"instruction/{item}")
            fleet = ferries(said, dice, NUM_FERRIES.get(shape, 1))
            checks, reference = MAKERS[shape](said, fleet)
            prompt = f"{facts(said, fleet)}\n\n{said['ask'][shape]}"
            kind = "table" if shape.startswith("table") else "data"
            yield Draft(
                item, kind, language, LEVEL[shape], (("user", prompt),), checks, reference, {"constraints": "1"}
            )


def schema_of(value: Any, *, exact: bool) -> dict[str, Any]:
    """The JSON Schema of `value`'s shape; with `exact`, of its very values."""
    if isinstance(value, dict):
        properties = {key: schema_of(one, exact=exact) for key, one in value.items()}
        return {"type": "object", "properties": properties, "required": list(value), "additionalProperties": False}
    if isinstance(value, list):
        num = {"minItems": len(value), "maxItems": len(value)}
        if exact:
            return {"type": "array", "prefixItems": [schema_of(one, exact=True) for one in value], **num}
        return {"type": "array", "items": schema_of(value[0], exact=False), **num}
    kind = {"type": "string" if isinstance(value, str) else "number"}
    return {**kind, "const": value} if exact else kind


def _json(value: Any) -> tuple[list[Check], str]:
    """JSON at all, JSON of this shape, and the right values: a third of the score each."""
    checks: list[Check] = [("detectable_format:json_format", {})]
    checks += [("detectable_format:json_schema", {"schema": schema_of(value, exact=exact)}) for exact in (False, True)]
    return checks, json.dumps(value, ensure_ascii=False, indent=2)


def _flat(texts: dict[str, Any], fleet: list[Ferry]) -> tuple[list[Check], str]:
    return _json({"name": fleet[0].name, "time": fleet[0].time, "seats": fleet[0].seats})


def _nested(texts: dict[str, Any], fleet: list[Ferry]) -> tuple[list[Check], str]:
    ferry = fleet[0]
    departure = {"place": ferry.place, "time": ferry.time, "pier": ferry.pier}
    return _json({"name": ferry.name, "departure": departure})


def _list(texts: dict[str, Any], fleet: list[Ferry]) -> tuple[list[Check], str]:
    return _json([{"name": one.name, "time": one.time, "pier": one.pier, "seats": one.seats} for one in fleet])


def _sorted(texts: dict[str, Any], fleet: list[Ferry]) -> tuple[list[Check], str]:
    by_time = sorted(fleet, key=lambda ferry: ferry.time)
    total = sum(ferry.seats for ferry in fleet)
    return _json({"ferries": [{"name": one.name, "seats": one.seats} for one in by_time], "total_seats": total})


def _table(texts: dict[str, Any], fleet: list[Ferry]) -> tuple[list[Check], str]:
    columns = texts["columns"]
    rows = [columns, ["---"] * 3, *([one.name, one.time, str(one.seats)] for one in fleet)]
    checks: list[Check] = [
        ("detectable_format:table", {"columns": columns, "rows": len(fleet)}),
        ("detectable_format:table", {"columns": columns, "only": True}),
        ("keywords:order", {"keywords": [one.name for one in fleet]}),
        ("keywords:existence", {"keywords": [str(one.seats) for one in fleet]}),
    ]
    return checks, "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _table_sorted(texts: dict[str, Any], fleet: list[Ferry]) -> tuple[list[Check], str]:
    return _table(texts, sorted(fleet, key=lambda ferry: -ferry.seats))


def _yaml(texts: dict[str, Any], fleet: list[Ferry]) -> tuple[list[Check], str]:
    ferry = fleet[0]
    checks: list[Check] = [
        ("detectable_format:yaml", {"keys": ["name", "place", "pier"]}),
        ("keywords:existence", {"keywords": [ferry.name, ferry.place]}),
    ]
    return checks, f"name: {ferry.name}\nplace: {ferry.place}\npier: {ferry.pier}"


MAKERS: dict[str, Callable[[dict[str, Any], list[Ferry]], tuple[list[Check], str]]] = {
    "flat": _flat,
    "nested": _nested,
    "list": _list,
    "sorted": _sorted,
    "table": _table,
    "table-sorted": _table_sorted,
    "yaml": _yaml,
}
