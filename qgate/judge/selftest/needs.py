"""A series of harms in, how many items it takes to see each level of damage, and to settle it, out. Touches nothing.

Sets of n items are drawn with replacement from the items that there are, which stand for all that are like them; a set
sees the damage where the gate's lower bound is above what no damage looks like, and settles it where it says PASS or FAIL,
whichever is true. The least n at which that happens in a share `power` of the sets is what is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np
from scipy.stats import norm

from qgate.judge.arms import Bools
from qgate.judge.resample import Draws, Floats
from qgate.judge.selftest.controls import FEWEST_ITEMS, MOST_ITEMS, NUM_SETS, STEPS_PER_DOUBLING
from qgate.judge.selftest.decided import failing, passing
from qgate.judge.selftest.series import Series
from qgate.schemas.recipe import Statistics

DOUBLINGS = np.log2(MOST_ITEMS / FEWEST_ITEMS)
SIZES = np.unique(np.geomspace(FEWEST_ITEMS, MOST_ITEMS, round(DOUBLINGS * STEPS_PER_DOUBLING) + 1).astype(int))


@dataclass(frozen=True)
class Need:
    """How many items one level of damage asks of one set; None: more than MOST_ITEMS, or not at all."""

    series: Series
    level: float
    harm: float
    see: int | None
    settle: int | None

    @property
    def is_harm(self) -> bool:
        """Whether there is anything to see on the whole set."""
        return self.harm > self.series.unharmed


def needs(found: Series, statistics: Statistics, draws: Draws, generator: np.random.Generator) -> list[Need]:
    """One per level of damage, the A/A arm left out."""
    margin, made = found.criterion.margin, []
    for number, level in enumerate(found.levels[1:], start=1):
        harms, harm = found.harms[number], float(found.values[number])
        search = _Search(found, harms, statistics, draws, int(generator.integers(2**32)))
        see = search.least(failing, found.unharmed) if harm > found.unharmed else None
        settle = search.least(passing if harm <= margin else failing, margin)
        made.append(Need(found, level, harm, see, settle))
    return made


@dataclass(frozen=True)
class _Search:
    found: Series
    harms: Floats
    statistics: Statistics
    draws: Draws
    seed: int

    def least(self, decide: Callable[..., Bools], margin: float) -> int | None:
        """The least of SIZES at which `decide` is true often enough, by bisection from a guess; None: more than all."""

        @cache
        def enough(index: int) -> bool:
            return self._share(decide, margin, int(SIZES[index])) >= self.statistics.power

        first, last = -1, len(SIZES)  # not enough there; enough there, as far as is known
        tried, stride = self._guess(margin), STEPS_PER_DOUBLING // 2
        while last - first > 1:
            if enough(tried):
                last = tried
            else:
                first = tried
            tried = (first + last) // 2
            if first < 0:
                tried = max(tried, last - stride)
            elif last == len(SIZES):
                tried = min(tried, first + stride)
            stride *= 2
        return int(SIZES[last]) if last < len(SIZES) else None

    def _share(self, decide: Callable[..., Bools], margin: float, size: int) -> float:
        chosen = np.random.default_rng([self.seed, size]).integers(self.harms.size, size=(NUM_SETS, size))
        found = decide(self.harms[chosen], self.found.support, margin, self.statistics.alpha, self.draws)
        return float(found.mean())

    def _guess(self, margin: float) -> int:
        """Where the textbook puts it: distance = (z_α + z_β)·s/√n + 3/n (see judge.power)."""
        distance = abs(margin - float(self.harms.mean()))
        reach = (norm.isf(self.statistics.alpha) + norm.isf(1 - self.statistics.power)) * float(self.harms.std())
        if distance == 0:
            return len(SIZES) - 1
        wanted = ((reach + sqrt(reach**2 + 12 * distance)) / (2 * distance)) ** 2
        return int(np.searchsorted(SIZES, wanted).clip(0, len(SIZES) - 1))
