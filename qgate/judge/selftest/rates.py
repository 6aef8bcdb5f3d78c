"""A world and a margin in, how often the gate says PASS and FAIL out: the verdict's own estimators. Touches nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from statsmodels.stats.proportion import proportion_confint

from qgate.judge.resample import Draws
from qgate.judge.selftest.decided import failing, passing, relative
from qgate.judge.selftest.others import NEWCOMBE, newcombe_10, student_t
from qgate.judge.selftest.slices import Sliced, decide
from qgate.judge.selftest.worlds import Paired, Relative, Runs, World

RUNS_AT_ONCE = 500


@dataclass(frozen=True)
class Cell:
    """One row of the table to be: a world, its true harm, the margin that it is judged by and the size of the set."""

    question: str
    """`edge`: the harm is the margin; `A/A`: there is none; `power`: anything else; `beyond`: outside the promise;
    `other`: at the edge, decided by another method than the gate's."""
    world: World
    harm: float
    margin: float
    num_items: int
    method: str = "the gate's"


@dataclass(frozen=True)
class Rates:
    """How often a cell's runs ended in PASS and in FAIL."""

    cell: Cell
    num_runs: int
    num_pass: int
    num_fail: int

    @property
    def passes(self) -> float:
        """Share of PASS."""
        return self.num_pass / self.num_runs

    @property
    def fails(self) -> float:
        """Share of FAIL."""
        return self.num_fail / self.num_runs

    def interval(self, count: int, level: float = 0.95) -> tuple[float, float]:
        """Clopper-Pearson interval of a share of runs, the Monte-Carlo error, at two-sided `level`."""
        low, high = proportion_confint(count, self.num_runs, alpha=1 - level, method="beta")
        return float(low), float(high)


def rate(cell: Cell, num_runs: int, alpha: float, draws: Draws, generator: np.random.Generator) -> Rates:
    """Simulate one cell. `draws` must be as wide as the cell has items."""
    num_pass = num_fail = 0
    for runs in _batches(cell, num_runs, generator):
        if cell.question == "other":
            passing, failing = _decide_otherwise(cell, runs, alpha, generator)
        else:
            passing, failing = _decide(cell, runs, alpha, draws)
        num_pass += passing
        num_fail += failing
    return Rates(cell, num_runs, num_pass, num_fail)


def _decide(cell: Cell, runs: Runs, alpha: float, draws: Draws) -> tuple[int, int]:
    """How many runs pass and fail, by the verdict's own bounds."""
    if isinstance(cell.world, Sliced):
        good, bad = decide(cell.world, runs, cell.margin, alpha, draws)
        return int(good.sum()), int(bad.sum())
    if isinstance(cell.world, Relative):
        good, bad = relative(runs, cell.margin, alpha, draws)
        return int(good.sum()), int(bad.sum())
    asked = (runs.harms, cell.world.support, cell.margin, alpha, draws)
    return int(passing(*asked).sum()), int(failing(*asked).sum())


def _decide_otherwise(cell: Cell, runs: Runs, alpha: float, generator: np.random.Generator) -> tuple[int, int]:
    if cell.method == NEWCOMBE and isinstance(cell.world, Paired):
        low, high = newcombe_10(runs.harms, cell.world, cell.harm, alpha, generator)
    else:
        low, high = student_t(runs.harms, alpha)
    return int((high <= cell.margin).sum()), int((low > cell.margin).sum())


def _batches(cell: Cell, num_runs: int, generator: np.random.Generator) -> Iterator[Runs]:
    for start in range(0, num_runs, RUNS_AT_ONCE):
        size = min(RUNS_AT_ONCE, num_runs - start)
        yield cell.world.draw(cell.harm, cell.num_items, size, generator)
