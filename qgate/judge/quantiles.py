"""Quantiles of the KL divergence over token positions: a token table in, an estimate out. Touches nothing.

By inversion (Woodruff 1952): the 99 % quantile is at most x just where the share of positions above x is at most 1 %,
and a share over items that hang together is what `resample` bounds. Every item weighs the same, however long. All of an
item's positions may lie above x, so that is what the unseen item's do: nothing weaker holds where the tail sits in few
items. Thresholds are tried many at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from qgate.judge.resample import Draws, Floats, Unseen, ratio_upper
from qgate.judge.sample import METHOD, nothing
from qgate.judge.tokens import TokenTable
from qgate.schemas.verdict import Estimate

NUM_TRIED = 24
NUM_ROUNDS = 4


@dataclass(frozen=True)
class _Tail:
    """KL per position float64[T] in ascending order, the item of each, and the number of positions per item."""

    kl: Floats
    cluster: NDArray[np.int64]
    sizes: Floats

    def shares_above(self, ranks: NDArray[np.int64]) -> Floats:
        """float64[K, n]: the share of each item's positions whose KL is above that at each of K ascending ranks."""
        thresholds = self.kl[ranks]
        bins = np.searchsorted(thresholds, self.kl, side="left")  # number of thresholds that a position is above
        width = len(ranks) + 1
        table = np.bincount(self.cluster * width + bins, minlength=self.sizes.size * width)
        per_bin = table.reshape(self.sizes.size, width).astype(np.float64)
        return per_bin[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:].T / self.sizes


def upper_tail(tokens: TokenTable, inside: NDArray[np.bool_], share: float, alpha: float, draws: Draws) -> Estimate:
    """The KL that a `share` of the positions of the answers `inside` exceeds, with bounds at 1 − `alpha` each."""
    use = inside[tokens.answer] & np.isfinite(tokens.kl)
    if not use.any():
        return nothing()
    present = np.bincount(tokens.cluster[use]) > 0
    cluster = (np.cumsum(present) - 1)[tokens.cluster[use]]
    order = np.argsort(tokens.kl[use])
    tail = _Tail(tokens.kl[use][order], cluster[order], np.bincount(cluster).astype(np.float64))
    value = float(kl_quantiles(tail.kl, tail.cluster, 1.0 - share))
    above, _ = _crossing(tail, share, alpha, draws, sign=1.0)
    _, below = _crossing(tail, share, alpha, draws, sign=-1.0)
    return Estimate(
        value=value,
        low=0.0 if below is None else min(float(tail.kl[below]), value),
        high=None if above is None else max(float(tail.kl[above]), value),
        num_items=tail.sizes.size,
        num_pairs=tail.kl.size,
        method=f"inverted share of positions, {METHOD}",
    )


def kl_quantiles(kl: Floats, cluster: NDArray[np.int64], levels: float | Sequence[float]) -> Floats:
    """Quantiles of float64[T] `kl` at `levels`, every item weighing the same; int64[T] `cluster` is the item of each."""
    weights = 1.0 / np.bincount(cluster)[cluster]
    return np.asarray(np.quantile(kl, levels, weights=weights, method="inverted_cdf"))


def fewest_to_bound(share: float, alpha: float) -> int:
    """Items without which the KL that a `share` of the positions exceeds has no upper bound, whatever was seen.

    With fewer, one item in 1/`share` whose positions all lie above anything seen is missed more often than `alpha`.
    """
    return ceil(log(alpha) / log(1.0 - share))


def _crossing(tail: _Tail, share: float, alpha: float, draws: Draws, *, sign: float) -> tuple[int | None, int | None]:
    """Ranks about the point at which the bound of the share above falls to `share`: one past it, and one before it.

    They are neighbours, or nearly so; each is on its safe side. sign 1 takes the upper bound of the share, −1 the lower.
    """
    first, last = -1, tail.kl.size  # before all, where everything is above; past the end, where nothing is
    for _ in range(NUM_ROUNDS):
        if last - first <= 1:
            break
        left = last - np.geomspace(1, last - first - 1, NUM_TRIED)  # denser towards the tail
        ranks = np.unique(left.astype(np.int64).clip(first + 1, last - 1))
        within = _bound(tail, ranks, alpha, draws, sign) <= share
        if within.any():
            last = int(ranks[within.argmax()])
            first = max([first, *ranks[ranks < last].tolist()])
        else:
            first = int(ranks[-1])
    return (last if last < tail.kl.size else None), (first if first >= 0 else None)


def _bound(tail: _Tail, ranks: NDArray[np.int64], alpha: float, draws: Draws, sign: float) -> Floats:
    above, ones = tail.shares_above(ranks), np.ones(tail.sizes.size)
    if sign > 0:
        return ratio_upper(above, ones, Unseen(1.0), alpha, draws)
    return -ratio_upper(-above, ones, Unseen(0.0), alpha, draws)
