import argparse
import csv

import pytest

from qgate.cli import main
from qgate.commands import selftest as command
from qgate.errors import ExitCode
from qgate.judge.selftest.rates import Cell
from qgate.judge.selftest.worlds import Paired, Runs
from qgate.schemas.recipe import Statistics


class Lying(Paired):
    """A world whose runs show no harm, whatever the truth."""

    def draw(self, harm, num_items, num_runs, generator):
        honest = super().draw(harm, num_items, num_runs, generator)
        return Runs(honest.harms * 0.0)


def run(monkeypatch, tmp_path, world):
    monkeypatch.setattr(
        command,
        "cells",
        lambda: tuple(
            Cell(question, world, harm, 0.05, 100) for question, harm in (("edge", 0.05), ("A/A", 0.0), ("power", 0.1))
        ),
    )
    return command.selftest(argparse.Namespace(out=tmp_path / "made", runs=200, damaged=tmp_path))


def test_it_writes_the_table_and_the_summary_the_same_each_time(monkeypatch, tmp_path, capsys):
    texts = []
    for folder in ("one", "two"):
        assert run(monkeypatch, tmp_path / folder, Paired(0.5, 0.3)) is ExitCode.PASS
        texts.append((tmp_path / folder / "made" / "table.csv").read_text())
    assert texts[0] == texts[1]
    rows = list(csv.DictReader(texts[0].splitlines()))
    assert [row["question"] for row in rows] == ["edge", "A/A", "power"]
    assert "# The gate's own error rates" in (tmp_path / "one" / "made" / "summary.md").read_text()
    assert "3 cells, 0 err too often" in capsys.readouterr().out


@pytest.mark.usefixtures("capsys")
def test_it_fails_where_a_cell_errs_too_often(monkeypatch, tmp_path):
    assert run(monkeypatch, tmp_path, Lying(0.5, 0.3)) is ExitCode.FAIL


def test_fewer_runs_than_none_are_a_mistake(tmp_path):
    assert main(["selftest", "--runs", "-1", "--out", str(tmp_path / "out")]) == ExitCode.USER_ERROR
    assert not (tmp_path / "out").exists()


def test_what_is_missed_is_told_of_the_recipes_that_come_with_qgate_wherever_the_evidence_lies(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(command.rare, "missed", lambda rows, tokens, criteria, statistics: asked.extend(criteria) or [])
    monkeypatch.setattr(command.rare, "page", lambda found, recipes, *words: "\n".join(recipes))
    command._rare_garbage(tmp_path, (), {}, Statistics(), "")
    assert "qwen2.5-7b" in (tmp_path / "rare.md").read_text().split()
    assert asked
