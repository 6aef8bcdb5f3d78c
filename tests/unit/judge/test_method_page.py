from pathlib import Path
from typing import get_args

from qgate.judge.compare import KL_QUANTILES, support_of
from qgate.judge.decide import MOST_MISSING, NAMES
from qgate.judge.quantiles import fewest_to_bound
from qgate.judge.sample import LEAST_UNSEEN, WORST_FACTOR, fewest_items
from qgate.schemas.recipe import Metric

PAGE = (Path(__file__).parents[3] / "docs" / "method.md").read_text(encoding="utf-8")


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
