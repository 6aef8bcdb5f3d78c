"""Many samples at once in, which of them pass and which fail by the verdict's own bounds out. Touches nothing.

A bound lies beyond the value that it bounds, so those whose value is on the wrong side of the margin need no bound.
"""

from __future__ import annotations

import numpy as np

from qgate.judge.arms import Bools
from qgate.judge.criteria import Support
from qgate.judge.resample import Draws, Floats, Unseen, is_within, ratio_draws
from qgate.judge.sample import RELATIVE_UNSEEN, fewest_items, unseen_items
from qgate.judge.selftest.worlds import Runs


def passing(harms: Floats, support: Support, margin: float, alpha: float, draws: Draws) -> Bools:
    """bool[R]: whether the upper bound of the mean of each of R samples float64[R, n] is within the margin, and n enough."""
    found = np.asarray(harms.mean(axis=1) <= margin)
    if harms.shape[1] < fewest_items(support, margin, alpha):
        return np.zeros_like(found)
    some = harms[found]
    high, _ = unseen_items(some, support)
    found[found] = _within(some, np.ones(harms.shape[1]), high, margin, alpha, draws)
    return found


def failing(harms: Floats, support: Support, margin: float, alpha: float, draws: Draws) -> Bools:
    """bool[R]: whether the lower bound of the mean of each of R samples float64[R, n] is above the margin."""
    found = np.asarray(harms.mean(axis=1) > margin)
    some = harms[found]
    _, low = unseen_items(some, support)
    found[found] = _within(-some, np.ones(harms.shape[1]), low, _below(-margin), alpha, draws)
    return found


def relative(runs: Runs, margin: float, alpha: float, draws: Draws) -> tuple[Bools, Bools]:
    """bool[R] each: which runs pass and which fail where the losses are held against the baseline's score."""
    assert runs.bases is not None
    high, low = RELATIVE_UNSEEN
    good = _within(runs.harms, runs.bases, high, margin, alpha, draws)
    return good, _within(-runs.harms, runs.bases, low, _below(-margin), alpha, draws)


def _within(
    numerators: Floats, denominators: Floats, unseen: Unseen, margin: float, alpha: float, draws: Draws
) -> Bools:
    if not len(numerators):
        return np.zeros(0, dtype=bool)
    return is_within(ratio_draws(numerators, denominators, unseen, draws), alpha, margin)


def _below(margin: float) -> float:
    return float(np.nextafter(np.float32(margin), np.float32(-np.inf)))
