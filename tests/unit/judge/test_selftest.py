import csv
import io

import numpy as np
import pytest

from qgate.judge.resample import Draws
from qgate.judge.sample import interval, of_items
from qgate.judge.selftest.grid import SIZES, cells
from qgate.judge.selftest.rates import Cell, Rates, rate
from qgate.judge.selftest.report import summary, table, too_often
from qgate.judge.selftest.worlds import Paired, Rate, Runs, Skewed, Tokens, TokenShare

ALPHA = 0.05
DRAWS = Draws(1_000, 1, 60)
WORLDS = [
    (Paired(0.5, 0.3), 0.05), (Paired(0.9, 1.0, 4, 0.3), 0.05), (Skewed("rare"), 0.05), (Skewed("mixed"), 0.05),
    (Skewed("broad"), 0.05), (Rate(4, 0.3), 0.02), (Tokens(1.0), 0.015), (Tokens(0.7, 0.05, 20.0), 0.015),
    (TokenShare(0.2), 0.01),
]  # fmt: skip


@pytest.mark.parametrize(("world", "harm"), WORLDS)
def test_worlds_have_the_harm_that_they_say(world, harm):
    runs = world.draw(harm, 400, 250, np.random.default_rng(0))
    means = runs.numerators.sum(axis=1) / runs.denominators.sum()
    error = means.std(ddof=1) / np.sqrt(means.size)
    assert abs(means.mean() - harm) < 4 * error
    rates = runs.numerators / runs.denominators
    assert rates.min() >= world.support.least
    assert rates.max() <= world.support.greatest


def test_seeds_of_an_item_hang_together_as_asked():
    generator = np.random.default_rng(0)
    loose, tight = (Rate(4, each).draw(0.3, 300, 50, generator).numerators.std() for each in (0.05, 0.9))
    assert tight > 1.6 * loose


@pytest.mark.parametrize("world", [Paired(0.5, 0.3), Rate(4, 0.3), TokenShare(0.2)])
def test_rates_count_what_the_verdicts_own_interval_says(world):
    margin = 0.06
    runs = world.draw(0.05, 60, 80, np.random.default_rng(5))

    class Fixed:
        family, support, settings = world.family, world.support, world.settings

        def draw(self, harm, num_items, num_runs, generator):
            return Runs(runs.numerators[:num_runs], runs.denominators)

    found = rate(Cell("edge", Fixed(), 0.05, margin, 60), 80, ALPHA, DRAWS, np.random.default_rng(0))
    each = [interval(of_items(row, runs.denominators, world.support, 60), ALPHA, DRAWS) for row in runs.numerators]
    passing = 0 if world.support.open else sum(bounds.high <= margin for bounds in each)  # 60 items are too few there
    assert found.num_pass == passing
    assert found.num_fail == sum(bounds.low > margin for bounds in each)


def test_the_grid_spans_what_the_method_promises():
    grid = cells()
    assert {cell.num_items for cell in grid if cell.question == "edge" and not isinstance(cell.world, Sliced)} == set(
        SIZES
    )
    assert (min(SIZES), max(SIZES)) == (20, 2000)
    pairs = [cell.world for cell in grid if isinstance(cell.world, Paired)]
    assert {0.02, 0.98} <= {world.base_rate for world in pairs}
    assert {1, 8} <= {world.num_seeds for world in pairs}
    assert all(cell.harm == cell.margin for cell in grid if cell.question == "edge")


def test_a_cell_that_errs_too_often_is_named():
    cell = Cell("edge", Paired(0.5, 0.3), 0.05, 0.05, 20)
    good, bad = Rates(cell, 2000, 100, 20), Rates(cell, 2000, 160, 20)
    assert too_often([good, bad], ALPHA) == [bad]
    text = summary([good, bad], ALPHA, "qgate selftest")
    assert "**1** of 2" in text
    lines = list(csv.DictReader(io.StringIO(table([good, bad]))))
    assert [float(line["share_pass"]) for line in lines] == [0.05, 0.08]


def test_a_biased_estimator_would_be_caught(monkeypatch):
    """The selftest can fail: without the unseen item, rare losses pass far too often."""
    from qgate.judge.resample import Unseen
    from qgate.judge.selftest import decided

    monkeypatch.setattr(decided, "unseen_items", lambda *_: (Unseen(0.0, 0.0), Unseen(0.0, 0.0)))
    cell = Cell("edge", Paired(0.9, 0.0), 0.05, 0.05, 20)
    found = rate(cell, 500, ALPHA, DRAWS, np.random.default_rng(0))
    assert too_often([found], ALPHA) == [found]
