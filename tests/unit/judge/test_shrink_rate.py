from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.judge.shrink_rate import LOOSE, TIGHT, RateTest, measured


def decided(test: RateTest, true_rate: float, rng: random.Random) -> tuple[bool, int]:
    failures = tries = 0
    while (keeps := test.keeps(failures, tries)) is None:
        num = test.more(failures, tries)
        failures, tries = failures + sum(rng.random() < true_rate for _ in range(num)), tries + num
    return keeps, tries


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("share", [LOOSE, TIGHT])
def test_errors_are_near_what_is_allowed(rate: float, share: float) -> None:
    rng, test = random.Random(1), RateTest(rate, floor_share=share)
    dropped = sum(not decided(test, rate, rng)[0] for _ in range(1500)) / 1500
    kept = sum(decided(test, rate * share, rng)[0] for _ in range(1500)) / 1500
    assert dropped < 2 * test.false_drop
    assert kept < 3 * test.false_keep


def test_what_never_fails_is_dropped_after_the_fewest_tries() -> None:
    rng = random.Random(1)
    for rate in (0.01, 0.1, 0.3, 0.9):
        assert decided(RateTest(rate), 0.0, rng) == (False, RateTest(rate).fewest_to_drop)


def test_a_certain_failure_takes_one_try() -> None:
    test = RateTest(1.0)
    assert test.more(0, 0) == 1
    assert (test.keeps(0, 0), test.keeps(1, 1), test.keeps(0, 1), test.keeps(2, 3)) == (None, True, False, False)


@given(st.floats(0.01, 1.0), st.integers(0, 50), st.integers(0, 50))
def test_it_asks_only_while_undecided_and_comes_to_an_end(rate: float, failures: int, clear: int) -> None:
    test = RateTest(rate)
    assert test.more(failures, failures + clear) >= 1
    many = 10 * test.fewest_to_drop
    assert test.keeps(0, many) is False
    assert test.keeps(many, many) is True


def test_an_interval_holds_its_rate_and_nothing_is_known_without_tries() -> None:
    assert (measured(0, 0).low, measured(0, 0).high, measured(0, 0).value) == (0.0, 1.0, None)
    found = measured(3, 10)
    assert found.value == 0.3
    assert found.low == pytest.approx(0.0667, abs=1e-4)  # Clopper-Pearson, as R's binom.test(3, 10)
    assert found.high == pytest.approx(0.6525, abs=1e-4)
