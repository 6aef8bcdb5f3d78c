"""The tables of a data card: a set and, where there are any, a model's answers to it in; Markdown out.

    python evalsets/card.py instruction@1 [answers ...] [--by severity]

An answers file has one JSON object per line with `id` and `text` (demo_answers.py), or is the answers.parquet that
results/power/collect.py makes of a run.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pyarrow.parquet as pq

from qgate import scorers
from qgate.io import evalsets
from qgate.judge.axes import natural
from qgate.schemas.evalset import Item
from qgate.schemas.recipe import EvalsetUse

Cells = dict[tuple[str, str], list[float]]
ORDER = ("en", "zh", "ja", "ar", "ru", "es", "th")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="The tables of a set's data card, as Markdown.")
    parser.add_argument("evalset", help="a shipped set, as instruction@1, or a folder")
    parser.add_argument("answers", nargs="*", type=Path, help="JSON lines or Parquet with `id` and `text`")
    parser.add_argument("--by", default="level", metavar="KEY", help="a slice in the columns, in place of the level")
    args = parser.parse_args()
    items = evalsets.load(EvalsetUse(name=args.evalset), Path.cwd()).items
    if args.answers:
        print(scores(items, read_answers(args.answers), args.by))
    else:
        print(make_up(items))


def make_up(items: tuple[Item, ...]) -> str:
    """Items by kind (rows) and language or level (columns)."""
    by_language = grouped(items, lambda item: item.language, lambda item: 1.0)
    by_level = grouped(items, lambda item: f"level {item.difficulty}", lambda item: 1.0)
    languages = sorted({item.language for item in items}, key=ORDER.index)
    levels = sorted({f"level {item.difficulty}" for item in items})
    return table(by_language | by_level, (*languages, *levels, "all"), lambda ones: str(len(ones)))


def scores(items: tuple[Item, ...], texts: dict[str, str], by: str = "level") -> str:
    """Mean score by kind (rows) and level or a slice (columns); in brackets the number of items answered."""

    def column(item: Item) -> str:
        return f"{by} {item.difficulty if by == 'level' else item.slices.get(by, 'none')}"

    answered = tuple(item for item in items if item.id in texts)
    cells = grouped(answered, column, lambda item: score(item, texts[item.id]))
    columns = sorted({column(item) for item in answered}, key=lambda name: natural(name.removeprefix(f"{by} ")))
    return table(cells, (*columns, "all"), lambda values: f"{fmean(values):.2f} ({len(values)})")


def score(item: Item, text: str) -> float:
    """The item's own score of `text`."""
    return scorers.load(item.scorer.name)(text, item.scorer.args, item.language)


def read_answers(files: list[Path]) -> dict[str, str]:
    """Id to text. A line ends with a newline only: an answer may hold any other separator of lines."""
    found: dict[str, str] = {}
    for file in files:
        if file.suffix == ".parquet":
            columns = pq.read_table(file, columns=["id", "text"])
            found |= dict(zip(columns["id"].to_pylist(), columns["text"].to_pylist(), strict=True))
        else:
            answers = [json.loads(line) for line in file.read_bytes().split(b"\n") if line]
            found |= {answer["id"]: answer["text"] for answer in answers}
    return found


def grouped(items: tuple[Item, ...], column: Callable[[Item], str], value: Callable[[Item], float]) -> Cells:
    """The values of the items by kind and column, and of all kinds and columns together."""
    cells: Cells = defaultdict(list)
    for item in items:
        number = value(item)
        for row in (item.kind, "all"):
            for name in (column(item), "all"):
                cells[row, name].append(number)
    return cells


def table(cells: Cells, columns: tuple[str, ...], cell: Callable[[list[float]], str]) -> str:
    """A Markdown table with a row per kind and one for all of them."""
    kinds = sorted({kind for kind, _ in cells} - {"all"})
    body = [[kind, *(cell(cells[kind, name]) if cells.get((kind, name)) else "" for name in columns)] for kind in kinds]
    total = ["all", *(cell(cells["all", name]) for name in columns)]
    return "\n".join(
        f"| {' | '.join(row)} |" for row in [["kind", *columns], ["---"] * (len(columns) + 1), *body, total]
    )


if __name__ == "__main__":
    main()
