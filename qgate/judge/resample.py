"""Bounds by reweighting items: per-item sums in, one-sided bounds of their ratio out. Touches nothing.

Items are independent; what happens inside an item (seeds, profiles, tokens) may hang together in any way, so items are
what is reweighted. Every draw gives each item an independent Exp(1) weight (Rubin 1981, the Bayesian bootstrap), and one
further, unseen item that takes the worst value there can be: Gaffke's bound (Gaffke 2005, "Three test statistics for a
nonparametric one-sided hypothesis on the mean of a nonnegative variable"; Learned-Miller and Thomas 2019,
arXiv:1905.06208). For values of 0 and 1 it is the Clopper-Pearson bound, so no event in n items gives about 3/n, and it
cannot degenerate: equal values leave the unseen item. Its coverage elsewhere is measured by `qgate selftest`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]

CACHED_WEIGHTS = 100_000_000
"""Weights kept between calls (400 MB); larger matrices are drawn again, block by block, at each call."""
BLOCK_WEIGHTS = 4_000_000
FEWEST_BEYOND = 20
"""Draws that lie beyond a bound; where alpha is so small that fewer would, more are made."""
MONTE_CARLO_GUARD = 2.0
"""Standard errors by which a quantile over draws is moved outwards, so that its own noise cannot make a bound tighter."""


@dataclass(frozen=True)
class Unseen:
    """The item that nobody has seen, at its worst for a bound: its numerator and its denominator."""

    numerator: float | Floats
    denominator: float | Floats = 1.0
    """Numbers, or float64[K] for K ratios at once."""


@dataclass(frozen=True)
class Interval:
    """A one-sided lower and a one-sided upper bound, each at its own 1 − alpha."""

    low: float
    high: float


@dataclass
class Draws:
    """Exponential weights float32[width + 1, resamples], the same for every call: fixed by seed and width.

    The first row is the unseen item's, the others those of up to `width` items; calls with fewer use the first of them.
    """

    resamples: int
    seed: int
    width: int
    _kept: list[Floats32] = field(default_factory=list, repr=False)
    _finer: dict[tuple[int, int], Draws] = field(default_factory=dict, repr=False)

    def enough_for(self, alpha: float, num_items: int) -> Draws:
        """These draws, or finer ones of `num_items` items at least where a bound at 1 − `alpha` takes more."""
        resamples = ceil(FEWEST_BEYOND / alpha)
        if resamples <= self.resamples:
            return self
        width = min(self.width, 1 << num_items.bit_length())
        return self._finer.setdefault((resamples, width), Draws(resamples, self.seed, width))

    def blocks(self) -> Iterator[Floats32]:
        """The weights, some of the draws at a time."""
        if self._kept:
            yield from self._kept
            return
        keep = self.resamples * (self.width + 1) <= CACHED_WEIGHTS
        made = []
        columns = max(1, BLOCK_WEIGHTS // (self.width + 1))
        for number, start in enumerate(range(0, self.resamples, columns)):
            generator = np.random.default_rng([self.seed, number])
            shape = (self.width + 1, min(columns, self.resamples - start))
            block = generator.standard_exponential(shape, dtype=np.float32)
            if keep:
                made.append(block)
            yield block
        self._kept = made

    def weigh(self, sums: Floats, unseen: Floats) -> Floats32:
        """Weighted sums float32[K, resamples] of float64[K, n] per-item `sums` and float64[K] `unseen`."""
        items = np.column_stack([unseen, sums]).astype(np.float32)
        if items.shape[1] > self.width + 1:
            raise ValueError(f"{sums.shape[1]} items, but weights for {self.width}")
        return np.concatenate([items @ block[: items.shape[1]] for block in self.blocks()], axis=1)


def _rank(num_draws: int, alpha: float) -> int:
    """The 0-based rank of the 1 − `alpha` quantile, moved up by its own Monte-Carlo error."""
    error = MONTE_CARLO_GUARD * np.sqrt(num_draws * alpha * (1 - alpha))
    return int(np.ceil(num_draws * (1 - alpha) + error))


def upper_quantile(draws: Floats32, alpha: float) -> Floats:
    """Upper bounds float64[K] from float32[K, B] draws; +inf where so few draws cannot show one."""
    rank = _rank(draws.shape[-1], alpha)
    if rank >= draws.shape[-1]:
        return np.full(draws.shape[:-1], np.inf)
    return np.partition(draws, rank, axis=-1)[..., rank].astype(np.float64)


def is_within(draws: Floats32, alpha: float, margin: float) -> NDArray[np.bool_]:
    """Whether `upper_quantile` is at most `margin`, without looking for it: bool[K]."""
    return np.asarray(np.count_nonzero(draws <= np.float32(margin), axis=-1) > _rank(draws.shape[-1], alpha))


def ratio_draws(numerators: Floats, denominators: Floats, unseen: Unseen, draws: Draws) -> Floats32:
    """float32[K, resamples] ratios of reweighted sums, for float64[K, n] sums per item and an unseen item each.

    `denominators` may be float64[n], the same for all. The result does not depend on the order of items, and no larger
    numerator ever lowers a quantile: items are put in order of denominator, then numerator.
    """
    rows = len(numerators)
    order = np.lexsort((numerators, np.broadcast_to(denominators, numerators.shape)), axis=-1)
    top = draws.weigh(np.take_along_axis(numerators, order, -1), np.broadcast_to(unseen.numerator, rows))
    bottoms = np.atleast_2d(np.sort(denominators, axis=-1))
    bottom = draws.weigh(bottoms, np.broadcast_to(unseen.denominator, len(bottoms)))
    if bottom.min() > 0:
        return top / bottom
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bottom > 0, top / bottom, np.where(top > 0, np.inf, -np.inf)).astype(np.float32)


def ratio_upper(numerators: Floats, denominators: Floats, unseen: Unseen, alpha: float, draws: Draws) -> Floats:
    """Upper bounds float64[K] at 1 − `alpha` of Σ numerators / Σ denominators: see `ratio_draws`."""
    return upper_quantile(ratio_draws(numerators, denominators, unseen, draws), alpha)


def mean_bounds(values: Floats, least: float, greatest: float, alpha: float, draws: Draws) -> Interval:
    """Bounds at 1 − `alpha` each of the mean of float64[n] item values that lie within [least, greatest]."""
    ones = np.ones(values.size)
    high = ratio_upper(values[None], ones, Unseen(greatest), alpha, draws)[0]
    low = -ratio_upper(-values[None], ones, Unseen(-least), alpha, draws)[0]
    return Interval(low=float(max(low, least)) + 0.0, high=float(min(high, greatest)) + 0.0)
