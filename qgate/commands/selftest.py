"""`qgate selftest`: simulate the gate's own error rates and write the table. Touches the output folder only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator

import numpy as np
from rich.console import Console
from rich.progress import track

from qgate.errors import ExitCode
from qgate.io.files import write_text
from qgate.judge.resample import Draws
from qgate.judge.selftest.grid import cells
from qgate.judge.selftest.rates import Cell, Rates, rate
from qgate.judge.selftest.report import summary, table, too_often
from qgate.schemas.recipe import Statistics


def selftest(arguments: argparse.Namespace) -> ExitCode:
    """Write table.csv and summary.md; exit 1 where a cell errs more often than alpha for sure."""
    statistics = Statistics()
    grid = cells()
    shown = track(grid, "simulating", console=Console(stderr=True), disable=not sys.stderr.isatty())
    rates = list(_simulate(shown, arguments.runs, statistics))
    bad = too_often(rates, statistics.alpha)
    write_text(arguments.out / "table.csv", table(rates))
    write_text(
        arguments.out / "summary.md", summary(rates, statistics.alpha, f"qgate selftest --runs {arguments.runs}")
    )
    print(f"{len(rates)} cells, {len(bad)} err too often; {arguments.out / 'summary.md'}")
    return ExitCode.FAIL if bad else ExitCode.PASS


def _simulate(grid: Iterable[Cell], num_runs: int, statistics: Statistics) -> Iterator[Rates]:
    """Every cell with a generator of its own, so that a cell's rates do not depend on the others."""
    draws: dict[int, Draws] = {}
    for number, cell in enumerate(grid):
        if cell.num_items not in draws:
            draws[cell.num_items] = Draws(statistics.resamples, statistics.seed, cell.num_items)
        generator = np.random.default_rng([statistics.seed, number])
        yield rate(cell, num_runs, statistics.alpha, draws[cell.num_items], generator)
