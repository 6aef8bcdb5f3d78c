"""The calibration texts that ship share no passage with an evaluation set, and their generator writes the same bytes."""

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "recipes" / "calibration"
PASSAGE = 12
"""Words (Chinese and Japanese: characters) in a row that count as the same passage."""
SETS = sorted(path.parent.name for path in (ROOT / "evalsets").glob("*/items.jsonl"))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def passages(path: Path) -> set[tuple[str, ...]]:
    found = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        for text in strings(json.loads(line)):
            units = re.findall(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W\d_\u3040-\u30ff\u4e00-\u9fff]+", text.lower())
            found |= {tuple(units[i : i + PASSAGE]) for i in range(len(units) - PASSAGE + 1)}
    return found


@pytest.fixture(scope="module")
def calibration() -> set[tuple[str, ...]]:
    found = passages(FOLDER / "general.jsonl")
    assert len(found) > 5_000
    return found


def test_there_are_sets_to_compare_with() -> None:
    assert SETS


@pytest.mark.parametrize("name", SETS)
def test_no_passage_is_shared(name: str, calibration: set[tuple[str, ...]]) -> None:
    shared = calibration & passages(ROOT / "evalsets" / name / "items.jsonl")
    assert not shared, f"{len(shared)} passages, e.g. {' '.join(next(iter(shared)))}"


def test_the_generator_writes_the_same_bytes() -> None:
    texts = runpy.run_path(str(FOLDER / "generate.py"))["texts"]()
    lines = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in texts)
    assert lines == (FOLDER / "general.jsonl").read_text(encoding="utf-8")


def test_the_texts_are_varied_and_all_different() -> None:
    entries = [json.loads(line) for line in (FOLDER / "general.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len({json.dumps(entry) for entry in entries}) == len(entries) == 256
    chinese = sum(bool(re.search(r"[\u4e00-\u9fff]", json.dumps(entry, ensure_ascii=False))) for entry in entries)
    assert 64 <= chinese <= 128
    assert sum("messages" in entry for entry in entries) > 100
