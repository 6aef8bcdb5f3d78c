"""A scorer of the user's own: a function that an installed package registers under `qgate.scorers`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from qgate import pipeline
from qgate.errors import EvalsetError, PluginError
from qgate.io import evalset_new, recipe
from tests.unit import checkpoints
from tests.unit.recipes import small, write
from tests.unit.test_pipeline import Watcher

MODULE = '''
def shortness(text, args, language):
    """1 for no word, 0 from `most` words on."""
    return max(0.0, 1.0 - len(text.split()) / args["most"]) * args.get("scale", 1)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package as pip installs it, found by its metadata."""
    site = tmp_path / "site"
    info = site / "own_scorer-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "own_scorer.py").write_text(MODULE, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-scorer\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[qgate.scorers]\nshortness = own_scorer:shortness\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    return tmp_path


def made(folder: Path, **args: float) -> Path:
    """A recipe with a set of eight questions that the user's scorer scores."""
    questions = [
        {"prompt": f"Crate {n} holds code X{n}. What is its code?", "scorer": {"name": "shortness", "args": args}}
        for n in range(8)
    ]
    source = folder / "in.jsonl"
    source.write_text("".join(json.dumps(question) + "\n" for question in questions), encoding="utf-8")
    evalset_new.new(folder / "tiny", source, description="d", license_id="LicenseRef-own")
    for number, name in enumerate(("model", "w8a8")):
        checkpoints.write(folder / name, number)
    return write(folder, small())


def test_its_scores_are_the_rows_scores(package: Path) -> None:
    outcome = pipeline.run(recipe.load(made(package, most=20)), package / "results", Watcher())
    rows = pq.read_table(outcome.folder / "answers.parquet").to_pylist()
    assert len(rows) == 24
    assert all(row["score"] == pytest.approx(max(0.0, 1 - len(row["text"].split()) / 20)) for row in rows)
    assert {row["score"] for row in rows} != {0.0}


def test_a_score_outside_0_and_1_is_refused_with_the_item_s_name(package: Path) -> None:
    with pytest.raises(EvalsetError, match=r"'shortness' gives .* on item line-0000\d\d; a score is in \[0, 1\]"):
        pipeline.run(recipe.load(made(package, most=20, scale=9)), package / "results", Watcher())


def test_without_the_package_the_name_is_unknown(tmp_path: Path) -> None:
    with pytest.raises((PluginError, EvalsetError), match="no scorer named 'shortness'"):
        made(tmp_path, most=20)
