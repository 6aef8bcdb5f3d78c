import numpy as np
import pytest

from qgate.judge.criteria import Support
from qgate.judge.power import further_items
from qgate.judge.resample import Draws, Unseen, ratio_upper
from qgate.judge.sample import estimate, of_items
from qgate.schemas.verdict import Estimate

ALPHA, POWER = 0.05, 0.8
DRAWS = Draws(1_000, 1, 1_500)


def estimate_of(values):
    return estimate(of_items(values, Support(-1, 1), values.size), ALPHA, DRAWS)


@pytest.mark.parametrize(
    ("loss", "margin", "verdict"), [(0.0, 0.05, "pass"), (0.02, 0.06, "pass"), (0.12, 0.05, "fail")]
)
def test_so_many_items_settle_it_with_about_the_power_asked_for(loss, margin, verdict):
    """Losses and wins of right and wrong answers, judged at the size that a first run of 100 items asks for."""
    chances = [0.05, 0.9 - loss, 0.05 + loss]  # won, same, lost
    generator = np.random.default_rng(1)
    typical = np.repeat([-1.0, 0.0, 1.0], np.round(100 * np.array(chances)).astype(int))
    needed = 100 + further_items(estimate_of(typical), margin, ALPHA, POWER)
    runs = generator.choice([-1.0, 0.0, 1.0], (300, needed), p=chances)
    sign = 1.0 if verdict == "pass" else -1.0
    bounds = ratio_upper(sign * runs, np.ones(needed), Unseen(1.0), ALPHA, DRAWS)
    assert 0.7 < (bounds <= sign * margin).mean() < 0.93


@pytest.mark.parametrize("num_items", [1, 5, 30])
def test_without_any_difference_it_is_the_rule_of_three(num_items):
    needed = num_items + further_items(estimate_of(np.zeros(num_items)), 0.05, ALPHA, POWER)
    assert 58 <= needed <= 66


def test_a_harm_on_the_margin_is_never_settled():
    assert further_items(estimate_of(np.full(50, 0.05)), 0.05, ALPHA, POWER) is None
    assert further_items(estimate_of(np.r_[np.ones(2), np.zeros(38)]), 0.0500001, ALPHA, POWER) is None


def test_nothing_measured_asks_for_nothing():
    nothing = Estimate(value=None, low=None, high=None, num_items=0, num_pairs=0, method="none")
    assert further_items(nothing, 0.05, ALPHA, POWER) is None
