"""Failures of so many tries in, what a change did to their rate out. Pure.

One-sided Fisher exact tests (Fisher, Statistical Methods, 1934) for a fall, exact Clopper-Pearson bounds (Biometrika
26:404, 1934) for what is left. Tries are made in rounds that double, and the error is shared by the looks (Bonferroni),
so a comparison that stops as soon as it is clear errs no more often than one that does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import Literal

from scipy.special import betaincinv
from scipy.stats import fisher_exact

ALPHA = 0.01
"""Error of one comparison. An incident makes about ten, so that at most a tenth of incidents sees a fall that is none."""
ROUNDS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
"""Tries after which is looked whether it is clear."""
FEW_TRIES = ROUNDS[-3]
"""Tries after which a comparison with too few failures is given up: more would not make it clear."""
CONFIDENCE = 0.95
ENOUGH_FAILURES = 8
"""Failures that reproduce an incident clearly: its rate is then known within a factor of about two."""
GONE_SHARE, KEPT_SHARE = 0.34, 0.25
"""Gone: below a third of the filed rate for sure. Kept: above a quarter of it for sure."""
PART_TRIES = ROUNDS[3]
"""Tries from which on a fall that is neither is one of a part of the failures."""
WHOLE_SHARE = 0.5
"""Kept whole: above half of it for sure, so that no other cause does the larger part."""

RARE = 0.1
"""Rate below which a change is tried on the seeds that failed first."""

Effect = Literal["kept", "less", "gone", "unclear"]


@dataclass(frozen=True)
class Count:
    """Failures of so many tries that were answered."""

    failures: int
    tries: int

    @property
    def rate(self) -> float:
        """Failures per try; 0 without a try."""
        return self.failures / self.tries if self.tries else 0.0

    @property
    def low(self) -> float:
        """One-sided 95 % lower bound of the rate."""
        if not self.failures:
            return 0.0
        return float(betaincinv(self.failures, self.tries - self.failures + 1, 1 - CONFIDENCE))

    @property
    def high(self) -> float:
        """One-sided 95 % upper bound of the rate: what is excluded where nothing failed."""
        if self.failures == self.tries:
            return 1.0
        return float(betaincinv(self.failures + 1, self.tries - self.failures, CONFIDENCE))


def tries_to_see(rate: float) -> int:
    """Tries after which a failure of this rate has shown at least once with 95 %: ceil(ln 0.05 / ln(1 - rate)).

    Raises ValueError unless the rate is above 0 and at most 1.
    """
    if not 0 < rate <= 1:
        raise ValueError(f"a rate is above 0 and at most 1, not {rate}")
    return 1 if rate == 1 else ceil(log(1 - CONFIDENCE) / log(1 - rate))


def p_of_fall(changed: Count, filed: Count) -> float:
    """Chance of so few failures under the change, if it changed nothing (Fisher exact, one-sided)."""
    table = [[filed.failures, filed.tries - filed.failures], [changed.failures, changed.tries - changed.failures]]
    return float(fisher_exact(table, alternative="greater").pvalue)


def _fell(changed: Count, filed: Count) -> bool:
    return p_of_fall(changed, filed) < ALPHA / len(ROUNDS)


def effect(changed: Count, filed: Count) -> Effect:
    """What the change did to the filed rate, where it is clear."""
    if not changed.tries or not filed.failures:
        return "unclear"
    fell = _fell(changed, filed)
    if fell and changed.high < GONE_SHARE * filed.rate:
        return "gone"
    if changed.low > KEPT_SHARE * filed.rate and not fell:
        return "kept"
    return "less" if fell and changed.low > 0 and changed.tries >= PART_TRIES else "unclear"


def is_whole(changed: Count, filed: Count) -> bool:
    """Whether the change left the larger part of the failures for sure."""
    return effect(changed, filed) == "kept" and changed.low > WHOLE_SHARE * filed.rate


def keeps_seeds(changed: Count) -> bool:
    """Whether a change keeps the failure, by one try of each of some seeds that failed as filed.

    Let a seed fail with f as filed and with c under the change. Seeds that failed are drawn as f, so the share of them that
    fails under the change is E[fc] / E[f], at most E[c] / E[f], which is what is kept of the rate: a lower bound of that
    share holds for it, however few seeds fail. The other way nothing follows: a change that only makes other random numbers
    matter lets seeds that failed pass, and others fail.
    """
    return changed.low > KEPT_SHARE


def most_tries(filed: Count) -> int:
    """Tries after which a comparison with the filed rate is given up: enough to see half of it four times over."""
    most = ROUNDS[-1] if filed.failures >= ENOUGH_FAILURES else FEW_TRIES
    return min(most, max(ROUNDS[1], 4 * tries_to_see(max(filed.rate, 1e-3) / 2)))


def next_round(tries: int) -> int:
    """Tries to have after the next round."""
    return next((size for size in ROUNDS if size > tries), ROUNDS[-1])


def wanted_as_filed(count: Count, rate: float) -> int:
    """Tries to have next of the request as filed: the number there is, where it is enough.

    `rate` is to be detected: so many tries are made as see it with 95 %. Once something failed, rounds go on until the
    failures are enough to compare with, or eight times as many tries did not bring them.
    """
    planned = tries_to_see(rate)
    if count.failures >= ENOUGH_FAILURES or (not count.failures and count.tries >= planned):
        return count.tries
    most = planned if not count.failures else min(ROUNDS[-1], max(ROUNDS[2], 8 * planned))
    return count.tries if count.tries >= most else min(next_round(count.tries), most)


def wanted_changed(count: Count, filed: Count) -> int:
    """Tries to have next of a changed request: the number there is, where its effect is clear or will not become so."""
    most = most_tries(filed)
    if count.tries and filed.failures and _fell(count, filed):
        most = max(most, PART_TRIES)
    if count.tries >= most or (count.tries and effect(count, filed) != "unclear"):
        return count.tries
    return min(next_round(count.tries), most)


def wanted_whole(count: Count, filed: Count) -> int:
    """The same, where it matters that what is kept is kept whole: two causes may share in a failure."""
    most = most_tries(filed)
    if count.tries >= most or effect(count, filed) != "kept" or is_whole(count, filed):
        return wanted_changed(count, filed)
    return min(next_round(count.tries), most)
