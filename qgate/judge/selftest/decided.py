"""Many samples at once in, which of them pass and which fail by the verdict's own bounds out. Touches nothing."""

from __future__ import annotations

import numpy as np

from qgate.judge.arms import Bools
from qgate.judge.criteria import Support
from qgate.judge.decide import fewest_items
from qgate.judge.resample import Draws, Floats, is_within, ratio_draws
from qgate.judge.sample import unseen_items


def passing(
    numerators: Floats, denominators: Floats, support: Support, margin: float, alpha: float, draws: Draws
) -> Bools:
    """bool[R]: whether the upper bound of each of R samples float64[R, n] is within the margin, and n is enough.

    `denominators` are float64[n], the same for all samples, or float64[R, n].
    """
    if support.open and numerators.shape[1] < fewest_items(alpha):
        return np.zeros(len(numerators), dtype=bool)
    high, _ = unseen_items(numerators, denominators, support)
    return is_within(ratio_draws(numerators, denominators, high, draws), alpha, margin)


def failing(
    numerators: Floats, denominators: Floats, support: Support, margin: float, alpha: float, draws: Draws
) -> Bools:
    """bool[R]: whether the lower bound of each of R samples float64[R, n] is above the margin."""
    _, low = unseen_items(numerators, denominators, support)
    below = float(np.nextafter(np.float32(-margin), np.float32(-np.inf)))
    return is_within(ratio_draws(-numerators, denominators, low, draws), alpha, below)
