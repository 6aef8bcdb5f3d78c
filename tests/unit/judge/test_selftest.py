import csv
import io

import numpy as np
import pytest

from qgate.judge.arms import Arms
from qgate.judge.compare import Case, measure
from qgate.judge.quantiles import upper_tail
from qgate.judge.resample import Draws
from qgate.judge.sample import interval, of_items
from qgate.judge.selftest.decided import failing, passing, relative
from qgate.judge.selftest.grid import MANY, SIZES, cells
from qgate.judge.selftest.rates import Cell, Rates, rate
from qgate.judge.selftest.report import summary, table, too_often
from qgate.judge.selftest.slices import Sliced, decide
from qgate.judge.selftest.worlds import Paired, Rate, Relative, Runs, Skewed, TokenQuantile, Tokens, TokenShare
from qgate.judge.tokens import TokenTable
from qgate.schemas.evidence import Evidence
from qgate.schemas.recipe import Criterion

from .made import row

ALPHA = 0.05
DRAWS = Draws(1_000, 1, 60)
WORLDS = [
    (Paired(0.5, 0.3), 0.05), (Paired(0.9, 1.0, 4, 0.3), 0.05), (Skewed("rare"), 0.05), (Skewed("mixed"), 0.05),
    (Skewed("broad"), 0.05), (Rate(4, 0.3), 0.02), (Tokens(1.0), 0.015), (Tokens(0.7, 0.05, 20.0), 0.015),
    (TokenShare(0.2), 0.01), (TokenQuantile("kl_p95", 0.2), 0.05), (TokenQuantile("kl_p99", 0.5, 0.005), 0.01),
    (TokenShare(0.2, 0.02), 0.05),
    (Sliced(0.5, 4, "all"), 0.05),
]  # fmt: skip


@pytest.mark.parametrize(("world", "harm"), WORLDS)
def test_worlds_have_the_harm_that_they_say(world, harm):
    runs = world.draw(harm, 400, 250, np.random.default_rng(0))
    means = runs.harms.mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(means.size)
    assert abs(means.mean() - harm) < 4 * error
    assert runs.harms.min() >= world.support.least
    assert runs.harms.max() <= world.support.greatest


def test_seeds_of_an_item_hang_together_as_asked():
    generator = np.random.default_rng(0)
    loose, tight = (Rate(4, each).draw(0.3, 300, 50, generator).harms.std() for each in (0.05, 0.9))
    assert tight > 1.6 * loose


@pytest.mark.parametrize("world", [Paired(0.5, 0.3), Rate(4, 0.3), TokenShare(0.2)])
def test_rates_count_what_the_verdicts_own_interval_says(world):
    margin = 0.06
    runs = world.draw(0.05, 60, 80, np.random.default_rng(5))

    class Fixed:
        family, support, settings = world.family, world.support, world.settings

        def draw(self, harm, num_items, num_runs, generator):
            return Runs(runs.harms[:num_runs])

    found = rate(Cell("edge", Fixed(), 0.05, margin, 60), 80, ALPHA, DRAWS, np.random.default_rng(0))
    each = [interval(of_items(row, world.support, 60), ALPHA, DRAWS) for row in runs.harms]
    passing = 0 if world.support.open else sum(bounds.high <= margin for bounds in each)  # 60 items are too few there
    assert found.num_pass == passing
    assert found.num_fail == sum(bounds.low > margin for bounds in each)


def test_the_grid_spans_what_the_method_promises():
    grid = cells()
    edges = [cell for cell in grid if cell.question == "edge" and not isinstance(cell.world, Sliced)]
    assert {cell.num_items for cell in edges if not isinstance(cell.world, TokenQuantile)} == set(SIZES)
    assert {cell.num_items for cell in edges if isinstance(cell.world, TokenQuantile)} == {*SIZES, MANY}
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


def test_a_quantile_that_passes_has_a_share_above_its_margin_that_passes_and_one_that_fails_a_share_that_fails():
    """So the self-test, which draws the shares, can only overstate how often `kl_p95` and the like err."""
    generator = np.random.default_rng(2)
    items, num_tokens, share = 80, 40, 0.05
    draws = Draws(1_000, 1, items)
    kl = np.exp(generator.standard_normal((items, 1)) * 0.3 + generator.standard_normal((items, num_tokens)))
    bounds = upper_tail(token_table(kl), np.ones(items, dtype=bool), share, ALPHA, draws)
    seen = set()
    for margin in np.quantile(kl, np.linspace(0.85, 0.999, 40)):
        above = (kl > margin).mean(axis=1)[None]
        asked = (above, TokenQuantile("kl_p95", 0.2).support, share, ALPHA, draws)
        good, bad = passing(*asked)[0], failing(*asked)[0]
        assert good or not bounds.high <= margin
        assert bad or not bounds.low > margin
        seen |= {(bool(good), bool(bad))}
    assert seen == {(True, False), (False, False), (False, True)}


@pytest.mark.parametrize(("harmed", "harm"), [("one", 0.2), ("all", 0.2), ("one", 0.0)])
def test_a_worst_slice_is_decided_as_the_verdict_measures_it(harmed, harm):
    world, margin, num_runs = Sliced(0.6, 3, harmed), 0.15, 25
    runs = world.draw(harm, 3 * 60, num_runs, np.random.default_rng(7))
    good, bad = decide(world, runs, margin, ALPHA, DRAWS)
    for number in range(num_runs):
        found = measure(sliced_case(runs, number), WORST, "w8a8").estimate
        assert good[number] == (found.high <= margin)
        assert bad[number] == (found.low > margin)
    if harmed == "one":
        assert world.draw(harm, 180, 400, np.random.default_rng(1)).harms[:, 1::3].mean() == pytest.approx(0, abs=0.01)


def test_slices_that_the_baseline_cannot_do_are_left_out_as_the_verdict_leaves_them_out():
    world, draws = Sliced(0.03, 3, "all", discordance=0.0), Draws(1_000, 1, 100)
    runs = world.draw(0.01, 3 * 100, 40, np.random.default_rng(1))
    found = [measure(sliced_case(runs, number, draws), WORST, "w8a8") for number in range(40)]
    assert {len(each.details.get("void", ())) for each in found} >= {0, 1, 2}
    good, _ = decide(world, runs, 0.045, ALPHA, draws)
    assert [bool(each) for each in good] == [each.estimate.high <= 0.045 for each in found]
    assert {True, False} == set(good.tolist())


WORST = Criterion(metric="worst_slice_score_loss", margin=0.15, by="kind")


def sliced_case(runs, number, draws=DRAWS):
    """One run as the judge has it: the slice of an item is its kind."""
    num_items = runs.harms.shape[1]
    before, after = runs.bases[number], runs.bases[number] - runs.harms[number]
    rows = [
        row(name, item, kind=f"k{item % 3}", score=float(scores[item]))
        for name, scores in (("baseline", before), ("w8a8", after))
        for item in range(num_items)
    ]
    return Case(Arms.of(Evidence(rows=tuple(rows))), {}, ALPHA, draws)


def token_table(kl):
    num_items, num_tokens = kl.shape
    nothing = np.zeros(kl.size)
    return TokenTable(
        rows=tuple(row(item=item) for item in range(num_items)),
        answer=np.repeat(np.arange(num_items), num_tokens),
        position=np.tile(np.arange(num_tokens), num_items),
        kl=kl.ravel(),
        disagree=nothing,
        drop=nothing,
        log_drop=nothing,
        covered=nothing,
        num_expected=num_items,
    )


def test_a_relative_loss_is_decided_as_the_verdict_measures_it():
    world, margin, num_runs = Relative(0.5, 0.3), 0.3, 40
    runs = world.draw(0.2, 60, num_runs, np.random.default_rng(3))
    assert runs.harms.sum() / runs.bases.sum() == pytest.approx(0.2, abs=0.05)
    good, bad = relative(runs, margin, ALPHA, DRAWS)
    wanted = Criterion(metric="relative_score_loss", margin=margin)
    found = [measure(sliced_case(runs, number), wanted, "w8a8").estimate for number in range(num_runs)]
    assert good.tolist() == [each.high <= margin for each in found]
    assert bad.tolist() == [each.low > margin for each in found]
    assert good.any()
