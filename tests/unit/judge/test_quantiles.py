import numpy as np
import pytest

from qgate.judge.quantiles import fewest_to_bound, upper_tail
from qgate.judge.resample import Draws
from qgate.judge.tokens import TokenTable

from .made import row

DRAWS = Draws(1_000, 1, 1_500)


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


@pytest.mark.parametrize(("share", "num_items"), [(0.05, 300), (0.01, 1_500)])
def test_the_quantile_lies_between_its_bounds_and_they_are_near(share, num_items):
    kl = np.random.default_rng(0).exponential(1.0, (num_items, 50))
    truth = -np.log(share)
    bounds = found(kl, share)
    assert bounds.value == pytest.approx(np.quantile(kl, 1 - share, method="inverted_cdf"))
    assert bounds.low < truth < bounds.high
    assert bounds.high - bounds.low < 0.15 * truth
    assert (bounds.num_items, bounds.num_pairs) == (num_items, num_items * 50)


def test_bounds_cover_as_they_say():
    generator = np.random.default_rng(1)
    truth = -np.log(0.05)
    outside = [found(generator.exponential(1.0, (80, 12)), 0.05) for _ in range(40)]
    assert sum(each.high < truth for each in outside) <= 8  # 5 % would be 3
    assert sum(each.low > truth for each in outside) <= 8


def test_positions_of_an_item_that_hang_together_widen_the_bounds():
    generator = np.random.default_rng(2)
    alone = generator.exponential(1.0, (300, 40))
    together = np.repeat(generator.exponential(1.0, (300, 1)), 40, axis=1)
    narrow, wide = found(alone, 0.05), found(together, 0.05)
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


@pytest.mark.parametrize("share", [0.05, 0.01])
def test_too_few_items_leave_the_tail_unbounded_whatever_was_seen(share):
    """An item all of whose positions are worse could be as frequent as `share` and have been missed."""
    fewest = fewest_to_bound(share, 0.05)
    assert (1 - share) ** fewest <= 0.05 < (1 - share) ** (fewest - 1)
    few, enough = (found(np.full((num_items, 3), 0.001), share) for num_items in (fewest - 1, round(1.2 * fewest)))
    assert few.high is None
    assert few.low is not None
    assert enough.high == 0.001


def test_all_positions_equal():
    bounds = found(np.full((300, 10), 0.25), 0.05)
    assert bounds.value == bounds.high == 0.25
    assert bounds.low <= 0.25
