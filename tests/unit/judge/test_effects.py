"""What a change did to a failure's rate, and how many tries it takes to say so."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.judge.effects import (
    ROUNDS,
    Count,
    effect,
    is_whole,
    keeps_seeds,
    most_tries,
    p_of_fall,
    tries_to_see,
    wanted_changed,
    wanted_whole,
)


@pytest.mark.parametrize(("rate", "tries"), [(0.10, 29), (0.01, 299), (0.5, 5), (1.0, 1)])
def test_tries_to_see_a_rate(rate: float, tries: int) -> None:
    assert tries_to_see(rate) == tries


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1])
def test_a_rate_that_is_none(rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        tries_to_see(rate)


@given(rate=st.floats(0.001, 0.999))
def test_so_many_tries_see_it_with_95_percent_and_one_fewer_do_not(rate: float) -> None:
    tries = tries_to_see(rate)
    assert (1 - rate) ** tries <= 0.05 * (1 + 1e-9)
    assert tries == 1 or (1 - rate) ** (tries - 1) > 0.05 * (1 - 1e-9)


def test_bounds_are_clopper_pearson() -> None:
    assert Count(0, 29).high == pytest.approx(1 - 0.05 ** (1 / 29))
    assert Count(8, 8).low == pytest.approx(0.05 ** (1 / 8))
    assert Count(0, 8).low == 0.0
    assert Count(8, 8).high == 1.0


def test_p_is_the_hypergeometric_tail() -> None:
    assert p_of_fall(Count(0, 8), Count(8, 8)) == pytest.approx(1 / 12_870)


@pytest.mark.parametrize(
    ("changed", "filed", "expected"),
    [
        ((8, 8), (8, 8), "kept"),
        ((0, 8), (8, 8), "gone"),
        ((0, 8), (8, 32), "unclear"),
        ((0, 64), (10, 32), "gone"),
        ((9, 32), (10, 32), "kept"),
        ((24, 64), (64, 64), "less"),
        ((0, 0), (8, 8), "unclear"),
        ((0, 8), (0, 8), "unclear"),
    ],
)
def test_effects(changed: tuple[int, int], filed: tuple[int, int], expected: str) -> None:
    assert effect(Count(*changed), Count(*filed)) == expected


@pytest.mark.parametrize(
    ("changed", "filed", "whole"),
    [((8, 8), (8, 8), True), ((4, 16), (8, 32), False), ((20, 64), (10, 32), True), ((8, 16), (12, 16), False)],
)
def test_what_is_kept_whole_keeps_more_than_half_for_sure(
    changed: tuple[int, int], filed: tuple[int, int], whole: bool
) -> None:
    assert effect(Count(*changed), Count(*filed)) == "kept"
    assert is_whole(Count(*changed), Count(*filed)) is whole
    assert (wanted_whole(Count(*changed), Count(*filed)) == changed[1]) is whole
    assert wanted_changed(Count(*changed), Count(*filed)) == changed[1]


@pytest.mark.parametrize(("rate", "share"), [(1.0, 1.0), (0.3, 0.97), (0.1, 0.9)])
def test_in_rounds_a_change_without_effect_is_seldom_called_one(rate: float, share: float) -> None:
    rng = np.random.default_rng(5)
    wrong, right = 0, 0
    for _ in range(300):
        filed = _sequential_filed(rng, rate)
        found = _in_rounds(rng, rate, filed)
        wrong += found in {"gone", "less"}
        right += found == "kept"
    assert wrong <= 6
    assert right >= share * 300


@pytest.mark.parametrize("rate", [1.0, 0.3, 0.1])
def test_in_rounds_a_change_that_mends_it_is_seen(rate: float) -> None:
    rng = np.random.default_rng(6)
    found = [_in_rounds(rng, 0.0, _sequential_filed(rng, rate)) for _ in range(100)]
    assert found.count("gone") >= 95


def _sequential_filed(rng: np.random.Generator, rate: float) -> Count:
    draws = rng.random(512) < rate
    tries = next((n for n in ROUNDS if draws[:n].sum() >= 8), 512)
    return Count(int(draws[:tries].sum()), tries)


def _in_rounds(rng: np.random.Generator, rate: float, filed: Count) -> str:
    draws = rng.random(512) < rate
    found = "unclear"
    for tries in ROUNDS:
        found = effect(Count(int(draws[:tries].sum()), tries), filed)
        if found != "unclear" or tries >= most_tries(filed):
            break
    return found


@pytest.mark.parametrize("num", range(1, 9))
def test_seeds_seldom_keep_a_failure_of_which_a_quarter_is_kept(num: int) -> None:
    said = [failures for failures in range(num + 1) if keeps_seeds(Count(failures, num))]
    assert sum(comb(num, each) * 0.25**each * 0.75 ** (num - each) for each in said) <= 0.05
    assert bool(said) == (num >= 3)


def test_a_fall_that_leaves_a_part_is_asked_until_it_is_clear_that_it_does() -> None:
    filed, tries = Count(8, 8), [Count(4, 20), Count(7, 32), Count(20, 64)]
    assert [wanted_changed(count, filed) for count in tries] == [32, 64, 64]
    assert effect(tries[-1], filed) == "less"
    assert wanted_changed(Count(18, 20), filed) == 20
