"""`qgate selftest`: the gate's own error rates, simulated and on checkpoints that were damaged on purpose.

Reads the evidence of the damaged checkpoints (results/power/collect.py makes it), writes tables and pages.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import track

from qgate.errors import ArtefactError, ExitCode, UserError
from qgate.io import artefact, recipe
from qgate.io.files import write_text
from qgate.io.shipped import shipped_folder
from qgate.judge.resample import Draws
from qgate.judge.selftest import damage_report, rare
from qgate.judge.selftest.damaged import examine
from qgate.judge.selftest.grid import cells
from qgate.judge.selftest.rates import Cell, Rates, rate
from qgate.judge.selftest.report import summary, table, too_often
from qgate.judge.selftest.series import Series
from qgate.judge.tokens import TokenTable
from qgate.reports import positions_table
from qgate.reports import table as answers_table
from qgate.schemas.evidence import Row
from qgate.schemas.recipe import BASELINE, Statistics
from qgate.schemas.run import Run

QUANTIZER = "noise"


def selftest(arguments: argparse.Namespace) -> ExitCode:
    """Write what was found; exit 1 where the gate errs more often than alpha for sure. Raises ArtefactError, UserError."""
    if arguments.runs < 0:
        raise UserError(f"--runs is {arguments.runs}", advice="give 1 or more, or 0 for no simulation")
    statistics = Statistics()
    sound = True
    if arguments.runs:
        sound &= _simulation(arguments, statistics)
    if (arguments.damaged / "run.json").is_file():
        sound &= _damage(arguments.damaged, statistics)
    else:
        print(f"no evidence of damaged checkpoints in {arguments.damaged}: that part is left out")
    return ExitCode.PASS if sound else ExitCode.FAIL


def _simulation(arguments: argparse.Namespace, statistics: Statistics) -> bool:
    """Whether no cell errs more often than alpha for sure."""
    grid = cells()
    shown = track(grid, "simulating", console=Console(stderr=True), disable=not sys.stderr.isatty())
    rates = list(_simulate(shown, arguments.runs, statistics))
    bad = too_often(rates, statistics.alpha)
    write_text(arguments.out / "table.csv", table(rates))
    write_text(
        arguments.out / "summary.md", summary(rates, statistics.alpha, f"qgate selftest --runs {arguments.runs}")
    )
    print(f"{len(rates)} cells, {len(bad)} err too often; {arguments.out / 'summary.md'}")
    return not bad


def _simulate(grid: Iterable[Cell], num_runs: int, statistics: Statistics) -> Iterator[Rates]:
    """Every cell with a generator of its own, so that a cell's rates do not depend on the others."""
    draws: dict[int, Draws] = {}
    for number, cell in enumerate(grid):
        if cell.num_items not in draws:
            draws[cell.num_items] = Draws(statistics.resamples, statistics.seed, cell.num_items)
        generator = np.random.default_rng([statistics.seed, number])
        yield rate(cell, num_runs, statistics.alpha, draws[cell.num_items], generator)


def _damage(folder: Path, statistics: Statistics) -> bool:
    """Whether more damage is never judged better beyond chance, and none at all never FAILs too often."""
    run = artefact.load(folder / "run.json", Run)
    rows = answers_table.read(pq.read_table(folder / "rows.parquet"))
    reference = [row for row in rows if row.variant == BASELINE and row.replicate == 0]
    tokens = positions_table.read(pq.read_table(folder / "positions.parquet"), reference)
    found = examine(rows, tokens, _levels(run, folder), statistics, _shown)
    wrong, loud = damage_report.wrong_order(found, statistics.alpha), damage_report.alarms(found, statistics.alpha)
    source = f"the answers of {run.run_id}: {len(rows):,} of them, {_engine(run)}."
    write_text(folder / "needed.csv", damage_report.needed_table(found))
    write_text(folder / "order.csv", damage_report.order_table(found))
    command = f"qgate selftest --runs 0 --damaged {folder.as_posix()}"
    write_text(folder / "summary.md", damage_report.page(found, statistics.alpha, command, source))
    _rare_garbage(folder, rows, tokens, statistics, source)
    print(
        f"{len(found.gains)} pairs of levels, {len(wrong)} in the wrong order; {len(found.alike)} A/A arms, {len(loud)} "
        f"FAIL too often; {folder / 'summary.md'}"
    )
    return not wrong and not loud


def _rare_garbage(
    folder: Path, rows: Sequence[Row], tokens: Mapping[str, TokenTable], statistics: Statistics, source: str
) -> None:
    """What the tiers of the shipped recipes miss."""
    recipes = {path.stem: recipe.read(path) for path in sorted(shipped_folder("recipes").glob("*.yaml"))}
    criteria = [each for known in recipes.values() for tier in known.tiers.values() for each in tier.criteria]
    found = rare.missed(rows, tokens, criteria, statistics)
    command = f"qgate selftest --runs 0 --damaged {folder.as_posix()}"
    write_text(folder / "rare.md", rare.page(found, recipes, command, source))


def _levels(run: Run, folder: Path) -> dict[str, float]:
    """Variant to level of damage."""
    makings = {name: checkpoint.making for name, checkpoint in run.checkpoints.items()}
    found = {
        name: float(making.options["level"])
        for name, making in makings.items()
        if making is not None and making.quantizer == QUANTIZER
    }
    if len(found) < 2:
        raise ArtefactError(
            f"{folder / 'run.json'} has {len(found)} variants made by the quantizer `{QUANTIZER}`; it takes two levels",
            advice="collect a run of recipes/damage.yaml",
        )
    return found


def _engine(run: Run) -> str:
    facts = run.engine_facts[BASELINE]
    return f"{facts.engine} {facts.version} on {facts.device}"


def _shown(all_series: Sequence[Series]) -> Iterable[Series]:
    return track(all_series, "judging", console=Console(stderr=True), disable=not sys.stderr.isatty())
