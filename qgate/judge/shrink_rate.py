"""Failures and tries so far → whether a candidate keeps the failure, or how many more tries that takes. Pure.

Wald's sequential probability ratio test (Ann. Math. Stat. 16:117, 1945) of "fails at the known rate" against "fails at
a small rate", in batches, cut short where it would run on. A failure that is certain needs one try.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log

from scipy.stats import binomtest

from qgate.schemas.minimised import Rate

CERTAIN = 0.999
"""Rates from here up are taken as certain."""
LOOSE, TIGHT = 0.1, 0.35
"""The small rate, as a share of the known one. With 0.1 the test keeps, more often than not, what fails at more than
0.41 of a known rate of 0.3 (there the expected step of the ratio is nil), with 0.35 at more than 0.63 of it, for about
four times the tries."""
LONGEST = 5
"""A test ends after this many times the tries that a rejection takes at least."""


@dataclass(frozen=True)
class RateTest:
    """A test of one candidate. `rate`: of the failure as filed; errors of either kind at most about the given ones."""

    rate: float
    false_keep: float = 0.01
    """Chance to keep a candidate that fails at the small rate only."""
    false_drop: float = 0.02
    """Chance to drop a candidate that fails at the known rate."""
    floor_share: float = LOOSE
    """The small rate over the known one."""
    batch: int = 4
    """Tries asked for at once, at least, where more than one is needed."""

    @property
    def is_certain(self) -> bool:
        """Whether one try decides."""
        return self.rate >= CERTAIN

    @property
    def _steps(self) -> tuple[float, float]:
        """What a failure adds to the log likelihood ratio, and what a clear try does (negative)."""
        floor = self.rate * self.floor_share
        return log(self.rate / floor), log((1 - self.rate) / (1 - floor))

    @property
    def _bounds(self) -> tuple[float, float]:
        return log(self.false_drop / (1 - self.false_keep)), log((1 - self.false_drop) / self.false_keep)

    @property
    def fewest_to_drop(self) -> int:
        """Clear tries in a row that drop a candidate."""
        return 1 if self.is_certain else ceil(self._bounds[0] / self._steps[1])

    def keeps(self, failures: int, tries: int) -> bool | None:
        """Whether the candidate keeps the failure; None: more tries are needed."""
        if self.is_certain:
            return failures == tries if tries else None
        failed, clear = self._steps
        ratio = failures * failed + (tries - failures) * clear
        low, high = self._bounds
        if ratio <= low or ratio >= high:
            return ratio >= high
        return ratio > 0 if tries >= LONGEST * self.fewest_to_drop else None

    def more(self, failures: int, tries: int) -> int:
        """How many tries to ask for next: enough to decide at best, and no more than decide for sure."""
        if self.is_certain:
            return 1
        failed, clear = self._steps
        ratio = failures * failed + (tries - failures) * clear
        low, high = self._bounds
        to_drop, to_keep = ceil((low - ratio) / clear), ceil((high - ratio) / failed)
        return max(1, min(max(min(to_drop, to_keep), self.batch), to_drop))


def measured(failures: int, tries: int) -> Rate:
    """The rate with its exact two-sided 95 % interval (Clopper & Pearson, Biometrika 26:404, 1934)."""
    if not tries:
        return Rate(failures=0, tries=0, low=0.0, high=1.0)
    found = binomtest(failures, tries).proportion_ci(0.95, "exact")
    return Rate(failures=failures, tries=tries, low=float(found.low), high=float(found.high))
