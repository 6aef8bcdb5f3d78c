"""The worst of several slices, simulated: a generator in, losses and baseline scores of many runs out, and their verdicts.

Touches nothing but that generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qgate.judge.arms import Bools
from qgate.judge.criteria import BASELINE_FLOOR, Support
from qgate.judge.resample import Draws
from qgate.judge.selftest.decided import failing, passing
from qgate.judge.selftest.worlds import SIGNED, Paired, Runs


@dataclass(frozen=True)
class Sliced:
    """Right and wrong answers in `num_slices` slices of equal size, the item number modulo `num_slices` being its slice.

    The first slice has the harm. The others have it too (`all`), or none (`one`).
    """

    base_rate: float
    num_slices: int
    harmed: str
    discordance: float = 0.3
    family: str = "worst slice"
    support: Support = SIGNED

    @property
    def settings(self) -> dict[str, float | str]:
        """The columns of the table."""
        return {
            "base_rate": self.base_rate,
            "discordance": self.discordance,
            "slices": self.num_slices,
            "harmed": self.harmed,
        }

    def draw(self, harm: float, num_items: int, num_runs: int, generator: np.random.Generator) -> Runs:
        """Losses of all items, slice by slice in turn, with the baseline's score of each."""
        size, pairs = num_items // self.num_slices, Paired(self.base_rate, self.discordance)
        losses = np.zeros((num_runs, size, self.num_slices))
        bases = np.zeros_like(losses)
        for number in range(self.num_slices):
            its = harm if number == 0 or self.harmed == "all" else 0.0
            losses[:, :, number] = pairs.draw(its, size, num_runs, generator).harms
            bases[:, :, number] = pairs.bases(losses[:, :, number], its, generator)
        shape = (num_runs, size * self.num_slices)
        return Runs(losses.reshape(shape), bases.reshape(shape))


def decide(world: Sliced, runs: Runs, margin: float, alpha: float, draws: Draws) -> tuple[Bools, Bools]:
    """bool[R] each: which runs pass and which fail, as `judge.compare` has the worst slice.

    Left out are the rules that only ever take a verdict back (a baseline too weak for the margin).
    """
    assert runs.bases is not None
    able, good, bad = [], [], []
    for number in range(world.num_slices):
        losses, bases = runs.harms[:, number :: world.num_slices], runs.bases[:, number :: world.num_slices]
        able.append(~passing(bases, Support(0, 1), BASELINE_FLOOR, alpha, draws))
        good.append(passing(losses, world.support, margin, alpha, draws))
        bad.append(failing(losses, world.support, margin, alpha / world.num_slices, draws))
    counted = np.array(able) | ~np.any(able, axis=0)  # slices that the baseline cannot do, unless it can do none
    return np.all(np.array(good) | ~counted, axis=0), np.any(np.array(bad) & counted, axis=0)
