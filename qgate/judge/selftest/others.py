"""What other intervals would have decided on the same runs, to show why the gate does not use them. Touches nothing."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from qgate.judge.paired import Table, newcombe
from qgate.judge.resample import Floats
from qgate.judge.selftest.worlds import Paired

STUDENT = "Student's t"
NEWCOMBE = "Newcombe 10"


def student_t(losses: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Lower and upper bounds, float64[R] each, of the mean of float64[R, n]: a point where all items are equal."""
    num_items = losses.shape[1]
    reach = student.isf(alpha, num_items - 1) * losses.std(axis=1, ddof=1) / np.sqrt(num_items)
    means = losses.mean(axis=1)
    return means - reach, means + reach


def newcombe_10(
    losses: Floats, world: Paired, harm: float, alpha: float, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """The same for one pair per item; pairs that agree are right or wrong as the world's base rate has it."""
    num_items = losses.shape[1]
    lost, won = (losses > 0).sum(axis=1), (losses < 0).sum(axis=1)
    chance_lost, chance_won = world.chances(harm)
    right = (world.base_rate - chance_lost) / (1 - chance_lost - chance_won)
    both = generator.binomial(num_items - lost - won, right)
    tables, which = np.unique(np.stack([both, lost, won], axis=1), axis=0, return_inverse=True)
    bounds = [newcombe(Table(a, b, c, num_items - a - b - c), alpha) for a, b, c in tables.tolist()]
    low, high = np.array(bounds)[which.ravel()].T
    return low, high
