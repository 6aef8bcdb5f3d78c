"""The data cards tell the truth: their make-up table is that of the set, their lengths cover every item."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qgate.io import evalsets
from qgate.schemas.recipe import EvalsetUse
from tests.unit.evalsets.remade import ROOT

SETS = ("instruction", "long-text", "noisy-text")


@pytest.fixture(scope="module")
def card() -> ModuleType:
    spec = importlib.util.spec_from_file_location("card", ROOT / "card.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SETS)
def test_the_make_up_table_is_that_of_the_set(card: ModuleType, name: str) -> None:
    items = evalsets.load(EvalsetUse(name=f"{name}@1"), Path("/")).items
    assert card.make_up(items) in (ROOT / name / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("instruction", "level"),
        ("long-text", "level"),
        ("long-text", "length"),
        ("noisy-text", "level"),
        ("noisy-text", "severity"),
    ],
)
def test_the_score_tables_are_those_of_the_stored_answers(card: ModuleType, name: str, by: str) -> None:
    items = evalsets.load(EvalsetUse(name=f"{name}@1"), Path("/")).items
    answers = card.read_answers([ROOT.parent / "results" / "power" / "answers.parquet"])
    assert card.scores(items, answers, by) in (ROOT / name / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", SETS)
def test_every_item_has_its_length_in_tokens(name: str) -> None:
    items = evalsets.load(EvalsetUse(name=f"{name}@1"), Path("/")).items
    with (ROOT / name / "tokens.csv").open(encoding="utf-8", newline="") as stream:
        assert [row["id"] for row in csv.DictReader(stream)] == [item.id for item in items]


def test_an_answer_may_hold_separators_of_lines(card: ModuleType, tmp_path: Path) -> None:
    text = "one\u2028two\x85three\x0bfour"
    (tmp_path / "a.jsonl").write_bytes(json.dumps({"id": "x", "text": text}, ensure_ascii=False).encode() + b"\n")
    pq.write_table(pa.table({"evalset": ["s"], "id": ["y"], "text": [text]}), tmp_path / "b.parquet")
    assert card.read_answers([tmp_path / "a.jsonl", tmp_path / "b.parquet"]) == {"x": text, "y": text}


def test_scores_are_told_by_a_slice_in_its_own_order(card: ModuleType) -> None:
    items = evalsets.load(EvalsetUse(name="long-text@1"), Path("/")).items
    told = card.scores(items, {item.id: "" for item in items}, "length")
    head = told.splitlines()[0]
    names = ("1k", "2k", "4k", "8k", "16k", "32k", "short")
    assert head == f"| kind | {' | '.join(f'length {name}' for name in names)} | all |"
