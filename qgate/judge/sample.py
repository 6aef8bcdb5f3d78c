"""Sums per item in, one sample of independent items out, and its estimate. Touches nothing.

Items are the clusters: an item's twins, profiles, seeds and tokens are summed up before anything is inferred.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isfinite, log

import numpy as np
from numpy.typing import NDArray

from qgate.judge.criteria import Support
from qgate.judge.resample import Draws, Floats, Interval, Unseen, ratio_upper
from qgate.judge.tokens import TokenTable
from qgate.schemas.verdict import Estimate

METHOD = "reweighted items and a worst unseen one"
WORST_FACTOR = 3.0
LEAST_UNSEEN = 0.1
"""Where a harm has no natural limit, the unseen item is taken to be this many times as bad as the worst seen, and at
least this bad (nats a token, or share). Chosen by coverage on skewed items: see `qgate selftest`."""
RELATIVE_UNSEEN = Unseen(1.0, 1.0), Unseen(1.0, 0.0)
"""For a relative loss: an item that the baseline always does and the other arm never, and the reverse."""
RARE_SHARE = 0.05
"""Such a harm passes only where a fault of this share of items would have been seen."""


@dataclass(frozen=True)
class Sample:
    """n independent items: float64[n] `numerators` and `denominators`, whose ratio of sums is the harm.

    For a mean over items the denominators are 1. `unseen_high` and `unseen_low` are the unseen items for the upper
    bound of the ratio and of its negative.
    """

    numerators: Floats
    denominators: Floats
    unseen_high: Unseen
    unseen_low: Unseen
    num_pairs: int
    num_missing: int = 0
    num_expected: int = 0
    bases: Floats | None = None
    """float64[n]: the baseline's own level per item, where the metric has one."""
    other_value: float | None = None

    @property
    def num_items(self) -> int:
        """Independent items."""
        return int(self.numerators.size)

    @property
    def value(self) -> float:
        """The point estimate; NaN where there is nothing to divide by."""
        total = float(self.denominators.sum())
        return float(self.numerators.sum()) / total if total > 0 else float("nan")

    @property
    def baseline_value(self) -> float | None:
        """The baseline's own level."""
        return None if self.bases is None or not self.bases.size else float(self.bases.mean())


def of_items(harms: Floats, support: Support, num_pairs: int) -> Sample:
    """The mean of float64[n] harms of items, which lie within `support`."""
    high, low = unseen_items(harms, support)
    return Sample(harms, np.ones(harms.size), high, low, num_pairs)


def means_by_item(cluster: NDArray[np.int64], values: Floats) -> Floats:
    """Means of the values of each item that has any which is known, of int64[N] `cluster` and float64[N] `values`."""
    known = ~np.isnan(values)
    counts = np.bincount(cluster[known])
    sums = np.bincount(cluster[known], weights=values[known])
    return np.asarray(sums[counts > 0] / counts[counts > 0])


def unseen_items(harms: Floats, support: Support) -> tuple[Unseen, Unseen]:
    """The unseen items of K samples float64[..., n] of items' harms, for the upper bound of the mean and of its negative."""
    if not harms.size or not support.open:
        return Unseen(support.greatest), Unseen(-support.least)
    return Unseen(_beyond_seen(harms, support.greatest)), Unseen(_beyond_seen(-harms, -support.least))


def _beyond_seen(harms: Floats, limit: float) -> Floats:
    """How bad the unseen item may be, given float64[..., n] harms of those seen: float64[...], at most `limit`."""
    return np.asarray(np.minimum(np.maximum(WORST_FACTOR * harms.max(axis=-1), LEAST_UNSEEN), limit))


def fewest_items(support: Support, margin: float, alpha: float) -> int:
    """Items without which a harm does not pass; 0 where gains could make up for the unseen item.

    Where the bound rests on the worst item seen, so many that a fault of a share RARE_SHARE of items is missed with half of
    the error that `alpha` allows. And where an item can be no worse than `support.greatest`, and nothing makes up for it,
    so many that the items which, being so bad, bring the harm to the `margin` alone, are all missed with `alpha` at most.
    """
    fewest = log(alpha / 2) / log(1 - RARE_SHARE) if support.open else 0.0
    if (support.open or support.least >= 0) and isfinite(support.greatest) and 0 < margin < support.greatest:
        fewest = max(fewest, log(alpha) / log(1 - margin / support.greatest))
    return ceil(fewest)


def relative(sample: Sample) -> Sample:
    """The same losses as a share of the baseline's level."""
    assert sample.bases is not None
    high, low = RELATIVE_UNSEEN
    return replace(sample, denominators=sample.bases, unseen_high=high, unseen_low=low)


def of_tokens(tokens: TokenTable, harms: Floats, inside: NDArray[np.bool_], support: Support) -> Sample:
    """The mean over items of the mean of float64[T] `harms` over an item's positions in the answers `inside`.

    Every item weighs the same: a mean over all positions would rest on the few items with the most tokens, and no bound
    of such a ratio holds where those differ from the rest.
    """
    use = inside[tokens.answer] & np.isfinite(harms)
    return of_items(means_by_item(tokens.cluster[use], harms[use]), support, int(use.sum()))


def interval(sample: Sample, alpha: float, draws: Draws) -> Interval:
    """One-sided bounds of the sample's ratio, each at 1 − `alpha`."""
    top, bottom = sample.numerators[None], sample.denominators
    high = ratio_upper(top, bottom, sample.unseen_high, alpha, draws)[0]
    low = -ratio_upper(-top, bottom, sample.unseen_low, alpha, draws)[0]
    least, greatest = _limits(sample)
    return Interval(low=max(float(low), least) + 0.0, high=min(float(high), greatest) + 0.0)


def _limits(sample: Sample) -> tuple[float, float]:
    """A ratio of sums lies between the least and the greatest item's; without this, rounding may put it outside."""
    if not (sample.denominators > 0).all() or sample.unseen_low.denominator == 0:
        return -np.inf, np.inf
    rates = sample.numerators / sample.denominators
    high = float(sample.unseen_high.numerator / sample.unseen_high.denominator)
    low = -float(sample.unseen_low.numerator / sample.unseen_low.denominator)
    return min(float(rates.min()), low), max(float(rates.max()), high)


def standard_error(sample: Sample) -> float | None:
    """Of a ratio of sums over independent items, by linearisation (Cochran 1977, section 2.11); None for one item."""
    n, size = sample.num_items, float(sample.denominators.mean())
    if n < 2 or size <= 0:
        return None
    residuals = sample.numerators - sample.value * sample.denominators
    return float(np.sqrt((residuals**2).sum() / (n - 1) / n) / size)


def lower_bound(sample: Sample, alpha: float, draws: Draws) -> float:
    """The lower bound of `interval` alone, for an alpha however small."""
    finer = draws.enough_for(alpha, sample.num_items)
    return -float(ratio_upper(-sample.numerators[None], sample.denominators, sample.unseen_low, alpha, finer)[0])


def estimate(sample: Sample, alpha: float, draws: Draws) -> Estimate:
    """The sample's harm with its bounds; None where there is nothing."""
    if sample.num_items == 0 or np.isnan(sample.value):
        return nothing(sample.num_items, sample.num_pairs)
    bounds = interval(sample, alpha, draws)
    return Estimate(
        value=sample.value,
        low=bounds.low,
        high=bounds.high,
        standard_error=standard_error(sample),
        num_items=sample.num_items,
        num_pairs=sample.num_pairs,
        method=METHOD,
    )


def nothing(num_items: int = 0, num_pairs: int = 0) -> Estimate:
    """The estimate of what could not be measured."""
    return Estimate(value=None, low=None, high=None, num_items=num_items, num_pairs=num_pairs, method="none")
