from pathlib import Path
from typing import get_args

import numpy as np

from qgate.judge.compare import KL_QUANTILES, support_of
from qgate.judge.decide import MOST_MISSING, NAMES
from qgate.judge.quantiles import fewest_to_bound
from qgate.judge.resample import Draws
from qgate.judge.sample import LEAST_UNSEEN, WORST_FACTOR, fewest_items, interval, of_items
from qgate.schemas.recipe import Metric, Statistics

PAGE = " ".join((Path(__file__).parents[3] / "docs" / "method.md").read_text(encoding="utf-8").split())


def test_every_metric_is_explained_and_has_a_name_for_reasons():
    for metric in get_args(Metric):
        assert f"`{metric}`" in PAGE
        assert metric in NAMES


def test_the_constants_on_the_page_are_those_in_the_code():
    assert f"at least {fewest_items(support_of('kl_mean'), 0.1, 0.05)} items" in PAGE
    assert f"margin of 0.02 takes {fewest_items(support_of('top1_disagreement'), 0.02, 0.05)} items" in PAGE
    assert f"It takes {fewest_to_bound(0.01, 0.05)} items" in PAGE
    fewest = [f"{fewest_to_bound(1 - level, 0.05):,}" for level in KL_QUANTILES.values()]
    assert "takes {}, {} and {} items".format(*fewest) in PAGE
    assert f"{MOST_MISSING:.0%}".replace("%", " %") in PAGE
    assert WORST_FACTOR == 3
    assert "three times as bad as the worst" in PAGE
    assert f"at least {LEAST_UNSEEN}" in PAGE


def test_the_fewest_items_without_any_difference_are_those_on_the_page():
    statistics = Statistics()
    draws = Draws(statistics.resamples, statistics.seed, width=100)

    def passes(num_items: int) -> bool:
        sample = of_items(np.zeros(num_items), support_of("score_loss"), num_items)
        return interval(sample, statistics.alpha, draws).high <= 0.05

    fewest = next(num for num in range(50, 100) if passes(num))
    assert f"items: {fewest} without any difference pass a margin of 0.05" in PAGE
