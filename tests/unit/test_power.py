"""The stored evidence of the damaged checkpoints is whole, the tables are made of it, and the pages quote the tables."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from qgate.io import artefact
from qgate.judge.arms import Arms
from qgate.judge.compare import Case
from qgate.judge.resample import Draws
from qgate.judge.selftest.controls import criteria
from qgate.judge.selftest.series import series
from qgate.reports import positions_table, table
from qgate.schemas.evidence import Evidence, Row
from qgate.schemas.recipe import BASELINE, Statistics
from qgate.schemas.run import Run

ROOT = Path(__file__).parents[2]
POWER = ROOT / "results" / "power"
LEVELS = {"noise-1": 0.01, "noise-2": 0.02, "noise-3": 0.04, "noise-4": 0.07, "noise-5": 0.12}
COUNTED = {"instruction": 423, "noisy-text": 640, "long-text": 173}


@pytest.fixture(scope="module")
def rows() -> tuple[Row, ...]:
    return tuple(table.read(pq.read_table(POWER / "rows.parquet")))


def test_every_arm_answered_every_item_in_both_profiles(rows: tuple[Row, ...]) -> None:
    pairs: dict[tuple[str, int], set[tuple[str, str, str]]] = defaultdict(set)
    for row in rows:
        pairs[row.variant, row.replicate].add((row.evalset, row.item, row.profile))
    assert pairs.keys() == {(BASELINE, 0), (BASELINE, 1), *((name, 0) for name in LEVELS)}
    assert len({frozenset(each) for each in pairs.values()}) == 1
    assert len(rows) == len(pairs) * 2 * sum(COUNTED.values())
    assert {name: sum(row.evalset == name for row in rows) // len(pairs) // 2 for name in COUNTED} == COUNTED


def test_the_run_says_what_was_damaged_and_names_no_folder_of_a_machine() -> None:
    run = artefact.load(POWER / "run.json", Run)
    levels = {
        name: made.making.options["level"] for name, made in run.checkpoints.items() if made.making and name in LEVELS
    }
    assert levels == LEVELS
    assert not run.failures
    assert re.findall(r"/(?:home|opt|root|tmp|usr|work)\b", (POWER / "run.json").read_text("utf-8")) == []


def test_the_table_of_items_needed_is_made_of_the_stored_answers(rows: tuple[Row, ...]) -> None:
    reference = [row for row in rows if row.variant == BASELINE and row.replicate == 0]
    tokens = positions_table.read(pq.read_table(POWER / "positions.parquet"), reference)
    statistics, arms = Statistics(), Arms.of(Evidence(rows=rows))
    case = Case(arms, tokens, statistics.alpha, Draws(100, statistics.seed, len(arms.clusters)))
    found = [series(case, each, LEVELS) for each in criteria(tuple(sorted(COUNTED)))]
    told = {
        (each.criterion.metric, each.scope, f"{level:g}", str(each.num_items), f"{harm:.6g}")
        for each in found
        if each is not None
        for level, harm in zip(each.levels[1:], each.values[1:], strict=True)
    }
    with (POWER / "needed.csv").open(encoding="utf-8", newline="") as stream:
        stored = {
            tuple(row[key] for key in ("metric", "scope", "level", "num_items", "harm"))
            for row in csv.DictReader(stream)
        }
    assert stored == told


@pytest.mark.parametrize("page", ["docs/method.md", "results/power/README.md"])
def test_pages_quote_the_tables_line_for_line(page: str) -> None:
    made = (POWER / "summary.md").read_text("utf-8").splitlines()
    scopes = ("all sets", *COUNTED)
    quoted = [
        line
        for line in (ROOT / page).read_text("utf-8").splitlines()
        if line.startswith(tuple(f"| {name} |" for name in scopes))
    ]
    assert len(quoted) >= 12
    assert [line for line in quoted if line not in made] == [], "results/power changed: quote it anew"


def test_the_page_quotes_what_rare_garbage_gets_past_line_for_line() -> None:
    made = (POWER / "rare.md").read_text("utf-8").splitlines()
    section = (ROOT / "docs" / "method.md").read_text("utf-8").split("### Rare faults")[1].split("\n## ")[0]
    quoted = [line for line in section.splitlines() if line.startswith("| ")]
    assert len(quoted) >= 8
    assert [line for line in quoted if line not in made] == [], "results/power changed: quote it anew"


def test_no_tier_for_a_model_of_7b_or_more_lets_two_garbled_items_in_a_hundred_pass() -> None:
    lines = (POWER / "rare.md").read_text("utf-8").splitlines()
    tiers = [line.split(" | ") for line in lines if re.match(r"\| (llama|mistral|qwen|ready|running)", line)]
    assert len(tiers) == 11
    assert all(float(cells[5]) <= 0.05 for cells in tiers)
