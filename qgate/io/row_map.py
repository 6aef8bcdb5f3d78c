"""Rows of a table and which column means what in, questions as JSON lines out. Pure.

`FIELD=COLUMN` takes a column as it is, `answers.text` a field inside it; `FIELD=text with {column}` fills columns into a
text, where {column:letter} writes 0 as A, and {column:options} a list as lines `A. …`, `B. …`. Fields are those of a
question (prompt, messages, answer, id, kind, language, difficulty, max_tokens), `slices.NAME`, and `args.NAME` for a
scorer that takes more than an answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qgate.errors import EvalsetError
from qgate.io.evalset_import import QUESTION_FIELDS
from qgate.schemas.base import canonical_json
from qgate.wording import near_or_known

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
FIELDS = frozenset(QUESTION_FIELDS - {"scorer", "slices"})
FORMS = "{column} as it is, {column:letter} for 0 as A, {column:options} for a list as lines `A. …`"
_HOLE = re.compile(r"\{([^{}:]+)(?::(letter|options))?\}")
_ODD_HOLE = re.compile(r"\{[\w.]+:(?!(?:letter|options)\})(\w*)\}")


@dataclass(frozen=True)
class RowMap:
    """Which columns make a question, and what scores it."""

    fields: Mapping[str, str]
    scorer: str

    @property
    def paths(self) -> list[str]:
        """Every column that is read, `answers.text` for a field inside one."""
        return [
            name
            for text in self.fields.values()
            for name in ([hole[1] for hole in _HOLE.finditer(text)] if _HOLE.search(text) else [text])
        ]

    @property
    def columns(self) -> list[str]:
        """Every column that is read, without the fields inside them."""
        return list(dict.fromkeys(path.split(".", 1)[0] for path in self.paths))


def parse(pairs: Sequence[str], scorer: str | None) -> RowMap:
    """The map that `--map FIELD=COLUMN …` and `--scorer NAME` mean. Raises EvalsetError."""
    fields: dict[str, str] = {}
    for pair in pairs:
        field, equals, column = pair.partition("=")
        if not equals or not column:
            raise EvalsetError(f"--map {pair}: not FIELD=COLUMN", advice="e.g. --map prompt=question")
        if field not in FIELDS and not re.fullmatch(r"(slices|args)\.[A-Za-z_]\w*", field):
            advice = near_or_known(field, [*sorted(FIELDS), "slices.NAME", "args.NAME"])
            raise EvalsetError(f"--map {pair}: a question has no field `{field}`", advice=advice)
        if field in fields:
            raise EvalsetError(f"--map {pair}: `{field}` is mapped twice", advice="text around columns: FIELD={a} {b}")
        if odd := _ODD_HOLE.search(column):
            raise EvalsetError(f"--map {pair}: a column is not written as `{odd[1]}`", advice=FORMS)
        fields[field] = column.replace("\\n", "\n")
    if not {"prompt", "messages"} & set(fields):
        raise EvalsetError("no column is mapped to what is asked", advice="--map prompt=COLUMN")
    if scorer is None:
        raise EvalsetError("columns alone do not say how an answer is scored", advice="name a scorer: --scorer exact")
    return RowMap(fields, scorer)


def to_lines(rows: Iterable[Mapping[str, Any]], how: RowMap, limit: int | None) -> bytes:
    """A question per row as JSON lines. With `limit` the rows whose ids hash least, in their order. Raises EvalsetError.

    A row without an id of its own is named by the hash of what it asks, so that it keeps its name wherever it stands.
    """
    copies: Counter[str] = Counter()
    made = []
    for number, row in enumerate(rows, start=1):
        if number == 1:
            _check_columns(row, how)
        made.append(_with_id(_question(row, how, number), copies))
    if limit is not None:
        kept = {question["id"] for question in sorted(made, key=_chance)[:limit]}
        made = [question for question in made if question["id"] in kept]
    return "".join(f"{json.dumps(question, ensure_ascii=False)}\n" for question in made).encode()


def _check_columns(row: Mapping[str, Any], how: RowMap) -> None:
    for column in how.columns:
        if column not in row:
            hint = f"in a text write {FORMS}; " if "{" in column else ""
            advice = hint + near_or_known(column, row, "columns")
            raise EvalsetError(f"the table has no column {column!r}", advice=advice)
    for path in how.paths:
        column, dot, inside = path.partition(".")
        fields = row[column]
        if dot and fields is not None and not (isinstance(fields, Mapping) and inside.split(".", 1)[0] in fields):
            known = f"it has {', '.join(fields)}" if isinstance(fields, Mapping) else f"its values are {fields!r:.40}"
            raise EvalsetError(f"the column {column!r} has no field {inside!r}", advice=known)


def _question(row: Mapping[str, Any], how: RowMap, number: int) -> dict[str, Any]:
    question: dict[str, Any] = {}
    args: dict[str, Any] = {}
    for field, text in how.fields.items():
        value = _filled(row, text, number) if _HOLE.search(text) else _value(row, text)
        if value is None:
            continue
        group, _, name = field.partition(".")
        if group == "slices":
            question.setdefault("slices", {})[name] = str(value)
        elif group == "args":
            args[name] = value
        else:
            question[field] = str(value) if field in {"id", "kind", "language"} else value
    return question | {"scorer": {"name": how.scorer, "args": args} if args else how.scorer}


def _value(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _filled(row: Mapping[str, Any], text: str, number: int) -> str:
    def fill(hole: re.Match[str]) -> str:
        value, how = _value(row, hole[1]), hole[2]
        try:
            if how == "letter":
                return LETTERS[int(value)]
            if how == "options":
                return "\n".join(f"{letter}. {each}" for letter, each in zip(LETTERS, value, strict=False))
        except (TypeError, ValueError, IndexError):
            raise EvalsetError(f"row {number}: {hole[0]} cannot be written of {value!r:.80}") from None
        return "" if value is None else str(value)

    return _HOLE.sub(fill, text)


def _with_id(question: dict[str, Any], copies: Counter[str]) -> dict[str, Any]:
    if "id" in question:
        return question
    stem = hashlib.sha256(canonical_json(question).encode()).hexdigest()[:16]
    copies[stem] += 1
    return question | {"id": f"row-{stem}" + (f"-{copies[stem]}" if copies[stem] > 1 else "")}


def _chance(question: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(str(question["id"]).encode()).digest()
