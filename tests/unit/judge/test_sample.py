import numpy as np
import pytest
import statsmodels.api as sm

from qgate.judge.arms import Arms
from qgate.judge.criteria import Support, metric_of
from qgate.judge.harms import read
from qgate.judge.resample import Draws, Unseen
from qgate.judge.sample import (
    LEAST_UNSEEN,
    Sample,
    estimate,
    fewest_items,
    interval,
    of_items,
    relative,
    standard_error,
)
from qgate.schemas.evidence import Evidence

from .made import evidence, row

DRAWS = Draws(4_000, 1, 300)


def harms(made: Evidence, metric: str = "score_loss"):
    return read(Arms.of(made).pairs("w8a8"), metric_of(metric))


def test_seeds_are_averaged_within_items_and_items_weigh_the_same():
    made = evidence([[1.0, 1.0], [1.0, 0.0]], {"w8a8": [[0.0, 1.0], [1.0, 0.0]]})
    sample = harms(made).sample()
    assert list(sample.numerators) == [0.5, 0.0]
    assert (sample.num_items, sample.num_pairs) == (2, 4)
    assert (sample.baseline_value, sample.other_value) == (0.75, 0.5)


def test_an_answer_that_did_not_come_is_the_greatest_harm_and_missing():
    sample = harms(evidence([[1.0], [0.0]], {"w8a8": [[None], [None]]})).sample()
    assert list(sample.numerators) == [1.0, 1.0]
    assert (sample.num_missing, sample.num_expected) == (2, 2)


def test_where_the_reference_did_not_answer_nothing_is_said():
    sample = harms(evidence([[None], [1.0]], {"w8a8": [[1.0], [1.0]]})).sample()
    assert (sample.num_items, sample.num_missing, sample.num_expected) == (1, 1, 2)


def test_answers_that_were_not_scored_are_not_expected_of_a_metric_scored_on_a_part():
    rows = [row(item=i, baseline_nll=1.0 if i < 3 else None) for i in range(5)]
    rows += [row("w8a8", i, baseline_nll=1.5 if i < 3 else None) for i in range(5)]
    sample = harms(Evidence(rows=tuple(rows)), "garble_nll_increase").sample()
    assert (sample.value, sample.num_items, sample.num_missing, sample.num_expected) == (0.5, 3, 0, 3)


def test_over_the_floor_is_request_by_request():
    flags = [(True, True), (False, True), (True, False), (False, False)]  # A/A same, variant same
    rows = [row(item=i) for i in range(4)]
    rows += [row(item=i, replicate=1, identical=same) for i, (same, _) in enumerate(flags)]
    rows += [row("w8a8", i, identical=same) for i, (_, same) in enumerate(flags)]
    arms = Arms.of(Evidence(rows=tuple(rows)))
    metric = metric_of("output_disagreement")
    over = read(arms.pairs("w8a8"), metric).over(read(arms.pairs("baseline#1"), metric))
    assert list(over.harm) == [0.0, -1.0, 1.0, 0.0]


def test_the_standard_error_of_a_ratio_is_that_of_a_cluster_robust_regression():
    generator = np.random.default_rng(0)
    sizes = generator.integers(5, 40, 60)
    cluster = np.repeat(np.arange(60), sizes)
    values = generator.normal(0.3, 1, cluster.size) + generator.normal(0, 0.5, 60)[cluster]
    fit = sm.OLS(values, np.ones(values.size)).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}
    )
    sample = Sample(np.bincount(cluster, values), sizes.astype(float), Unseen(9.0), Unseen(9.0), values.size)
    assert sample.value == pytest.approx(fit.params[0])
    assert standard_error(sample) == pytest.approx(fit.bse[0] * np.sqrt(60 / 59))


def test_a_relative_loss_is_at_most_all_and_covers_the_ratio():
    generator = np.random.default_rng(0)
    base = (generator.random(300) < 0.3).astype(float)
    kept = base * (generator.random(300) < 0.8)
    found = estimate(relative(_with_bases(base, kept)), 0.05, DRAWS)
    assert found.value == pytest.approx(1 - kept.sum() / base.sum())
    assert found.value - 0.1 < found.low < found.value < found.high < found.value + 0.1
    assert estimate(relative(_with_bases(base, base * 0)), 0.05, DRAWS).high == 1.0


def _with_bases(base, kept):
    return harms(evidence(base[:, None].tolist(), {"w8a8": kept[:, None].tolist()})).sample()


def test_a_harm_without_a_limit_keeps_a_width_where_all_items_are_equal():
    for level in (0.0, 1.0):
        sample = of_items(np.full(100, level), Support(0, np.inf, open=True), 100)
        bounds = interval(sample, 0.05, DRAWS)
        assert bounds.high - level == pytest.approx(3 / 100 * max(2 * level, LEAST_UNSEEN), rel=0.1)
        assert bounds.low <= level


def test_one_item_has_no_standard_error():
    assert standard_error(of_items(np.ones(1), Support(-1, 1), 1)) is None


@pytest.mark.parametrize("margin", [0.02, 0.05, 0.3])
def test_a_share_never_passes_with_fewer_items_than_the_fewest_and_does_with_a_few_more(margin):
    fewest = fewest_items(Support(0, 1), margin, 0.05)
    for num_items, within in ((fewest - 1, False), (round(1.1 * fewest) + 1, True)):
        sample = of_items(np.zeros(num_items), Support(0, 1), num_items)
        assert (interval(sample, 0.05, DRAWS).high <= margin) is within
    assert fewest_items(Support(-1, 1), margin, 0.05) == 0
