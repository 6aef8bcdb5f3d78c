import pytest
from scipy.stats import binom
from statsmodels.stats.contingency_tables import mcnemar

from qgate.judge.arms import Pair
from qgate.judge.paired import Table, counts, mcnemar_worse, newcombe

from .made import row


def test_newcombe_gives_the_published_interval_of_cavo_2012():
    # Fagerland, Lydersen, Laake: complete response before and after consolidation therapy, 59 6 / 16 80
    low, high = newcombe(Table(59, 6, 16, 80), alpha=0.025)
    assert (low, high) == pytest.approx((-0.1186, -0.0046), abs=5e-5)


def test_newcombe_gives_the_published_interval_of_bentur_2009():
    # airway hyper-responsiveness before and after stem cell transplantation, 1 1 / 7 12
    low, high = newcombe(Table(1, 1, 7, 12), alpha=0.025)
    assert (low, high) == pytest.approx((-0.507, -0.026), abs=5e-4)


def test_newcombe_keeps_a_width_without_discordant_pairs():
    low, high = newcombe(Table(5, 0, 0, 0), alpha=0.05)
    assert low < -0.2
    assert high > 0.2


@pytest.mark.parametrize(("lost", "won"), [(9, 1), (1, 9), (5, 5), (1, 0), (0, 3)])
def test_mcnemar_is_the_exact_binomial_tail(lost, won):
    p = mcnemar_worse(Table(10, lost, won, 10))
    assert p == pytest.approx(binom.sf(lost - 1, lost + won, 0.5))
    if lost > won:
        assert p == pytest.approx(mcnemar([[10, lost], [won, 10]], exact=True).pvalue / 2)


def test_mcnemar_without_discordant_pairs_says_nothing():
    assert mcnemar_worse(Table(10, 0, 0, 10)) == 1.0


def test_flips_are_counted_both_ways():
    scores = [(1.0, 1.0), (1.0, 0.0), (1.0, 0.2), (0.0, 1.0), (0.0, 0.0)]
    pairs = [Pair(row(item=i, score=a), row("w", i, score=b)) for i, (a, b) in enumerate(scores)]
    found = counts(pairs, 0.05)
    assert (found["right_to_wrong"], found["wrong_to_right"], found["num_pairs"]) == (2, 1, 5)
    assert found["newcombe_low"] < 0.2 < found["newcombe_high"]


def test_tests_for_independent_pairs_are_left_out_where_items_repeat():
    pairs = [Pair(row(seed=seed), row("w", seed=seed)) for seed in range(4)]
    assert "mcnemar_p" not in counts(pairs, 0.05)
