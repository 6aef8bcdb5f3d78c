import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from qgate.judge import resample
from qgate.judge.resample import Draws, Unseen, is_within, mean_bounds, ratio_draws, ratio_upper, upper_quantile

DRAWS = Draws(resamples=10_000, seed=1, width=200)
QUICK = Draws(resamples=1_000, seed=1, width=200)
values = st.lists(st.floats(-1, 1), min_size=1, max_size=60).map(np.array)


@pytest.mark.parametrize(("count", "size"), [(0, 5), (0, 59), (0, 200), (1, 20), (3, 20), (20, 20), (90, 200)])
def test_shares_are_bounded_as_by_clopper_and_pearson(count, size):
    sample = np.r_[np.ones(count), np.zeros(size - count)]
    bounds = mean_bounds(sample, 0.0, 1.0, 0.05, DRAWS)
    exact_low, exact_high = proportion_confint(count, size, alpha=0.1, method="beta")
    strict_low, strict_high = proportion_confint(count, size, alpha=0.08, method="beta")
    assert strict_low - 1e-3 <= bounds.low <= exact_low + 1e-3
    assert exact_high - 1e-3 <= bounds.high <= strict_high + 1e-3


def test_no_event_gives_about_three_over_n():
    assert mean_bounds(np.zeros(200), 0.0, 1.0, 0.05, DRAWS).high == pytest.approx(3 / 200, rel=0.06)


def test_a_single_item_shows_next_to_nothing():
    bounds = mean_bounds(np.zeros(1), -1.0, 1.0, 0.05, DRAWS)
    assert bounds.low < -0.85
    assert bounds.high > 0.85


def test_a_large_sample_is_bounded_as_by_students_t():
    sample = np.random.default_rng(0).uniform(-0.3, 0.5, 200)
    bounds = mean_bounds(sample, -1.0, 1.0, 0.05, DRAWS)
    reach = 1.653 * sample.std(ddof=1) / np.sqrt(200)
    assert bounds.high - sample.mean() == pytest.approx(reach, abs=0.006)
    assert sample.mean() - bounds.low == pytest.approx(reach, abs=0.01)


@given(values, st.randoms(use_true_random=False))
def test_order_never_matters(sample, random):
    shuffled = list(sample)
    random.shuffle(shuffled)
    assert mean_bounds(sample, -1, 1, 0.05, QUICK) == mean_bounds(np.array(shuffled), -1, 1, 0.05, QUICK)


@given(values, st.data())
def test_more_harm_never_lowers_a_bound(sample, data):
    worse = sample + np.array([data.draw(st.floats(0, 1 - value)) for value in sample])
    before, after = (mean_bounds(each, -1, 1, 0.05, QUICK) for each in (sample, worse))
    assert after.low >= before.low - 1e-6
    assert after.high >= before.high - 1e-6


@given(values, st.floats(-1, 1))
def test_within_is_the_same_question_as_the_bound(sample, margin):
    made = ratio_draws(sample[None], np.ones(sample.size), Unseen(1.0), QUICK)
    assert is_within(made, 0.05, margin)[0] == (upper_quantile(made, 0.05)[0] <= np.float32(margin))


@settings(max_examples=20)
@given(values)
def test_many_samples_at_once_are_the_same_as_one_by_one(sample):
    stack = np.stack([sample, sample / 2, -sample])
    at_once = ratio_upper(stack, np.ones(sample.size), Unseen(1.0), 0.05, QUICK)
    one_by_one = [ratio_upper(each[None], np.ones(sample.size), Unseen(1.0), 0.05, QUICK)[0] for each in stack]
    assert at_once == pytest.approx(one_by_one, abs=1e-6)


def test_weights_drawn_block_by_block_are_those_that_are_kept(monkeypatch):
    sample = np.linspace(0, 1, 50)
    kept = mean_bounds(sample, 0, 1, 0.05, Draws(2_000, 3, 80))
    monkeypatch.setattr(resample, "CACHED_WEIGHTS", 0)
    drawn_again = Draws(2_000, 3, 80)
    assert mean_bounds(sample, 0, 1, 0.05, drawn_again) == kept
    assert drawn_again._kept == []


def test_too_few_draws_for_a_bound_give_none():
    assert upper_quantile(np.zeros((1, 100), dtype=np.float32), 0.001)[0] == np.inf


def test_more_items_than_weights_is_a_bug():
    with pytest.raises(ValueError, match="201 items"):
        mean_bounds(np.zeros(201), 0, 1, 0.05, DRAWS)
