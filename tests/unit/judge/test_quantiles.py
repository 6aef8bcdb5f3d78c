import numpy as np
import pytest

from qgate.judge.quantiles import upper_tail
from qgate.judge.resample import Draws
from qgate.judge.tokens import TokenTable

from .made import row

DRAWS = Draws(1_000, 1, 300)


def table(kl: np.ndarray) -> TokenTable:
    """float64[items, positions]"""
    num_items, num_positions = kl.shape
    flat = kl.ravel()
    nothing = np.zeros(flat.size)
    return TokenTable(
        rows=tuple(row(item=item) for item in range(num_items)),
        answer=np.repeat(np.arange(num_items), num_positions),
        position=np.tile(np.arange(num_positions), num_items),
        kl=flat,
        disagree=nothing,
        drop=nothing,
        log_drop=nothing,
        covered=nothing,
        num_expected=num_items,
    )


def found(kl, share):
    return upper_tail(table(kl), np.ones(len(kl), dtype=bool), share, 0.05, DRAWS)


@pytest.mark.parametrize("share", [0.05, 0.01])
def test_the_quantile_lies_between_its_bounds_and_they_are_near(share):
    kl = np.random.default_rng(0).exponential(1.0, (300, 50))
    truth = -np.log(share)
    bounds = found(kl, share)
    assert bounds.value == pytest.approx(np.quantile(kl, 1 - share, method="inverted_cdf"))
    assert bounds.low < truth < bounds.high
    assert bounds.high - bounds.low < 0.35 * truth
    assert (bounds.num_items, bounds.num_pairs) == (300, 15_000)


def test_bounds_cover_as_they_say():
    generator = np.random.default_rng(1)
    truth = -np.log(0.05)
    outside = [found(generator.exponential(1.0, (80, 12)), 0.05) for _ in range(40)]
    assert sum(each.high < truth for each in outside) <= 8  # 5 % would be 3
    assert sum(each.low > truth for each in outside) <= 8


def test_positions_of_an_item_that_hang_together_widen_the_bounds():
    generator = np.random.default_rng(2)
    alone = generator.exponential(1.0, (200, 40))
    together = np.repeat(generator.exponential(1.0, (200, 1)), 40, axis=1)
    narrow, wide = found(alone, 0.05), found(together, 0.05)
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_too_few_items_leave_the_tail_unbounded():
    bounds = found(np.random.default_rng(3).exponential(1.0, (5, 20)), 0.001)
    assert bounds.high is None
    assert bounds.low is not None


def test_all_positions_equal():
    bounds = found(np.full((300, 10), 0.25), 0.05)
    assert bounds.value == bounds.high == 0.25
    assert bounds.low <= 0.25
