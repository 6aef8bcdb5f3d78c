"""Series of harms in, whether more damage is ever judged better beyond chance, and no damage ever FAILs, out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.multitest import multipletests

from qgate.judge.criteria import Support
from qgate.judge.resample import Draws, Floats
from qgate.judge.selftest.controls import NUM_PARTS, PART_SIZES, PERMUTATIONS
from qgate.judge.selftest.decided import failing, passing
from qgate.judge.selftest.series import Series

NUM_ORDERED = NUM_PARTS // 4
"""Parts on which all levels are judged, which takes several times as long."""


@dataclass(frozen=True)
class Gain:
    """How much less harm a higher level of damage shows than a lower one, item by item."""

    series: Series
    lower: float
    higher: float
    gain: float
    p: float
    """One-sided, of a paired permutation test: the two levels' harms of each item are swapped at random."""


@dataclass(frozen=True)
class Ordered:
    """One series: how sure its harm rises with the level, and how often a part of it says otherwise."""

    series: Series
    p_rise: float
    """Of a permutation test: each item's harms are dealt to the levels at random (Page 1963, in values for ranks)."""
    contradicted: dict[int, float]
    """By size: share of parts on which a level FAILs and a higher one passes."""


@dataclass(frozen=True)
class Alike:
    """The A/A arm on parts of one size: how often it FAILs."""

    series: Series
    num_items: int
    num_runs: int
    num_fail: int
    """At the criterion's margin."""
    num_fail_at_zero: int | None
    """At the margin 0 with the two runs swapped at random in each item, so that there is no harm; None for a harm that
    cannot be a gain."""


def gains(all_series: Sequence[Series], generator: np.random.Generator) -> list[Gain]:
    """Every pair of levels of every series, with p adjusted for having looked at all of them (Holm 1979)."""
    found = [gain for each in all_series for gain in _gains(each, generator)]
    if not found:
        return []
    _, adjusted, _, _ = multipletests([gain.p for gain in found], method="holm")
    return [
        Gain(gain.series, gain.lower, gain.higher, gain.gain, float(p)) for gain, p in zip(found, adjusted, strict=True)
    ]


def _gains(found: Series, generator: np.random.Generator) -> list[Gain]:
    pairs = list(combinations(range(len(found.levels)), 2))
    differences = np.array([found.harms[low] - found.harms[high] for low, high in pairs])
    signs = 2.0 * generator.integers(0, 2, size=(PERMUTATIONS, found.num_items), dtype=np.int8) - 1
    by_chance, seen = signs @ differences.T, differences.sum(axis=1)
    as_large = (by_chance >= seen - 1e-9 * np.abs(differences).sum(axis=1)).sum(axis=0)
    return [
        Gain(
            found,
            found.levels[low],
            found.levels[high],
            float(gain / found.num_items),
            float((1 + count) / (1 + PERMUTATIONS)),
        )
        for (low, high), gain, count in zip(pairs, seen, as_large, strict=True)
    ]


def ordered(found: Series, alpha: float, draws: Draws, generator: np.random.Generator) -> Ordered:
    """Whether the harm rises, and how often parts of the set contradict it."""
    contradicted = {}
    for size in (*(size for size in PART_SIZES if size < found.num_items), found.num_items):
        parts = _parts(found.num_items, size, NUM_ORDERED if size < found.num_items else 1, generator)
        contradicted[size] = float(_contradicts(_verdicts(found, parts, alpha, draws)).mean())
    return Ordered(found, _p_rise(found, generator), contradicted)


def _p_rise(found: Series, generator: np.random.Generator) -> float:
    ranks = np.arange(len(found.levels)) - (len(found.levels) - 1) / 2
    by_chance = np.zeros(NUM_PARTS)
    for item in found.harms.T:
        by_chance += generator.permuted(np.tile(item, (NUM_PARTS, 1)), axis=1) @ ranks
    seen = float(ranks @ found.harms.sum(axis=1))
    return float((1 + (by_chance >= seen - 1e-9).sum()) / (1 + NUM_PARTS))


def _parts(num_items: int, size: int, num_parts: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """int64[num_parts, size]: items without replacement."""
    return np.argsort(generator.random((num_parts, num_items)), axis=1)[:, :size]


def _verdicts(found: Series, parts: NDArray[np.int64], alpha: float, draws: Draws) -> NDArray[np.int8]:
    """int8[K, R]: 1 for PASS, −1 for FAIL, 0 for neither, of the levels after the A/A arm."""
    margin = found.criterion.margin
    rows = []
    for harms in found.harms[1:]:
        good = passing(harms[parts], found.support, margin, alpha, draws)
        bad = failing(harms[parts], found.support, margin, alpha, draws)
        rows.append(good.astype(np.int8) - bad.astype(np.int8))
    return np.array(rows)


def _contradicts(verdicts: NDArray[np.int8]) -> NDArray[np.bool_]:
    """bool[R]: whether some level FAILs and a higher one passes."""
    failed_below = np.minimum.accumulate(verdicts, axis=0) == -1
    return np.asarray((failed_below & (verdicts == 1)).any(axis=0))


def alike(found: Series, alpha: float, draws: Draws, generator: np.random.Generator) -> list[Alike]:
    """The A/A arm on parts of every size."""
    return [
        _alike(found, size, alpha, draws, generator)
        for size in (*(size for size in PART_SIZES if size < found.num_items), found.num_items)
    ]


def _alike(found: Series, size: int, alpha: float, draws: Draws, generator: np.random.Generator) -> Alike:
    parts = _parts(found.num_items, size, NUM_PARTS, generator)
    harms = found.harms[0][parts]
    num_fail = int(failing(harms, found.support, found.criterion.margin, alpha, draws).sum())
    return Alike(found, size, NUM_PARTS, num_fail, _swapped(harms, found.support, alpha, draws, generator))


def _swapped(harms: Floats, support: Support, alpha: float, draws: Draws, generator: np.random.Generator) -> int | None:
    if support.least >= 0:
        return None
    signs = 2.0 * generator.integers(0, 2, size=harms.shape, dtype=np.int8) - 1
    return int(failing(harms * signs, support, 0.0, alpha, draws).sum())
