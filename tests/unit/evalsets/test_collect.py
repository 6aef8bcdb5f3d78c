"""A run's evidence made small by results/power/collect.py says the same as the run."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow.parquet as pq
import pytest

from qgate.commands.selftest import selftest
from qgate.errors import ArtefactError
from qgate.io import artefact
from qgate.judge.arms import FLOOR
from qgate.judge.compare import support_of
from qgate.judge.sample import of_tokens
from qgate.pipeline import Outcome
from qgate.reports import positions_table, table
from qgate.schemas.run import Run
from tests.unit.evalsets.remade import ROOT
from tests.unit.test_pipeline import made, run

EVIDENCE = {"enabled": True, "garble": False, "max_items": 12}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("run")
    return run(folder, made(folder, token_evidence=EVIDENCE))[0]


@pytest.fixture
def collect(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("collect", ROOT.parent / "results" / "power" / "collect.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def collected(collect: ModuleType, outcome: Outcome, out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "argv", ["collect.py", str(outcome.folder), str(out)])
    collect.main()
    return out


@pytest.mark.usefixtures("capsys")
def test_rows_and_positions_come_back(
    collect: ModuleType, outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = collected(collect, outcome, tmp_path / "out", monkeypatch)
    told = table.read(pq.read_table(outcome.folder / "answers.parquet"))
    rows = table.read(pq.read_table(out / "rows.parquet"))
    assert len(rows) == len(told)
    for small, full in zip(rows, told, strict=True):
        assert (small.pair, small.variant, small.replicate, small.score) == (
            full.pair, full.variant, full.replicate, full.score,
        )  # fmt: skip
        assert [hit.name for hit in small.defects] == [hit.name for hit in full.defects]
        assert (small.excused, small.family, small.completion_tokens) == (
            full.excused,
            full.family,
            full.completion_tokens,
        )
        assert small.text is None
    reference = [row for row in rows if row.variant == "baseline" and row.replicate == 0]
    tokens = positions_table.read(pq.read_table(out / "positions.parquet"), reference)
    assert tokens.keys() == {FLOOR, "good", "bad"}
    assert all(each.num_expected == len(each.rows) == 12 for each in tokens.values())
    harm = {criterion.metric: criterion.estimate.value for criterion in outcome.sheet.tiers[0].variants[2].criteria}
    kept = of_tokens(tokens["bad"], tokens["bad"].kl, np.ones(12, dtype=bool), support_of("kl_mean"))
    assert kept.value == pytest.approx(harm["kl_mean"], rel=1e-3)
    assert artefact.load(out / "run.json", Run).run_id == outcome.run.run_id


@pytest.mark.usefixtures("capsys")
def test_the_baselines_greedy_answers_are_kept_for_the_data_cards(
    collect: ModuleType, outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = collected(collect, outcome, tmp_path / "out", monkeypatch)
    answers = pq.read_table(out / "answers.parquet").to_pylist()
    told = table.read(pq.read_table(outcome.folder / "answers.parquet"))
    texts = {row.item: row.text for row in told if row.variant == "baseline" and row.replicate == 0}
    assert {answer["id"]: answer["text"] for answer in answers} == texts


@pytest.mark.usefixtures("capsys")
def test_a_run_without_planted_damage_is_refused_as_such(
    collect: ModuleType, outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = collected(collect, outcome, tmp_path / "out", monkeypatch)
    with pytest.raises(ArtefactError, match="it takes two levels"):
        selftest(argparse.Namespace(runs=0, damaged=out, out=tmp_path))


def test_scores_of_other_answers_under_the_baseline_are_not_mixed_in(
    collect: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed, _ = run(tmp_path, made(tmp_path, token_evidence=EVIDENCE | {"garble": True}))
    with pytest.raises(SystemExit, match="garble: false"):
        collected(collect, mixed, tmp_path / "out", monkeypatch)
