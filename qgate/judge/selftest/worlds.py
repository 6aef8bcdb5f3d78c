"""Made-up worlds in which the true harm is known: a generator in, items of many runs out. Touches nothing but that."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Protocol

import numpy as np
from scipy.stats import norm

from qgate.judge.criteria import Support
from qgate.judge.resample import Floats


@dataclass(frozen=True)
class Runs:
    """R runs of n items: float64[R, n], the harm of each item."""

    harms: Floats
    bases: Floats | None = None
    """float64[R, n]: the baseline's scores, where the verdict asks for them."""


SIGNED, SHARE = Support(-1, 1), Support(0, 1)
NO_LIMIT, TOKEN_SHARE = Support(0, inf, open=True), Support(0, 1, open=True)


class World(Protocol):
    """A population of items whose mean harm is `harm` exactly."""

    @property
    def family(self) -> str:
        """What is measured in it."""

    @property
    def support(self) -> Support:
        """Range of an item's harm."""

    @property
    def settings(self) -> dict[str, float | str]:
        """The columns of the table."""

    def draw(self, harm: float, num_items: int, num_runs: int, generator: np.random.Generator) -> Runs:
        """`num_runs` runs with true harm `harm`."""


class _Told:
    """A world of numbers that are all columns of the table."""

    @property
    def settings(self) -> dict[str, float | str]:
        """The columns of the table."""
        return {name: value for name, value in vars(self).items() if name not in {"family", "support"}}


def _beta(mean: float, correlation: float, shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
    """Chances of items with this mean; `correlation` is that of two answers to one item (beta-binomial)."""
    if mean <= 0 or mean >= 1 or correlation <= 0:
        return np.full(shape, min(max(mean, 0.0), 1.0))
    size = 1 / correlation - 1
    return generator.beta(mean * size, (1 - mean) * size, shape)


@dataclass(frozen=True)
class Paired(_Told):
    """Right and wrong answers of two arms: losses and wins of the other arm against the baseline.

    `discordance` 0: the other arm only loses; 1: right and wrong are unrelated between the arms.
    """

    base_rate: float
    discordance: float
    num_seeds: int = 1
    correlation: float = 0.0
    family: str = "score loss, right or wrong"
    support: Support = SIGNED

    def chances(self, harm: float) -> tuple[float, float]:
        """P(lost), P(won) of an answer."""
        won = self.discordance * (1 - self.base_rate) * (self.base_rate - harm)
        return won + harm, won

    def draw(self, harm: float, num_items: int, num_runs: int, generator: np.random.Generator) -> Runs:
        """Items share a chance to differ at all, and seeds of an item draw from it."""
        lost, won = self.chances(harm)
        shape = (num_runs, num_items)
        differ = _beta(lost + won, self.correlation, shape, generator)
        num_differ = generator.binomial(self.num_seeds, differ)
        share_lost = _beta(lost / (lost + won) if lost + won else 0.0, self.correlation, shape, generator)
        num_lost = generator.binomial(num_differ, share_lost)
        return Runs((2.0 * num_lost - num_differ) / self.num_seeds)

    def bases(self, losses: Floats, harm: float, generator: np.random.Generator) -> Floats:
        """What the baseline scored: right where it was lost, wrong where it was won, elsewhere as its rate has it."""
        lost, won = self.chances(harm)
        right = (self.base_rate - lost) / (1 - lost - won)
        return np.where(losses != 0, losses > 0, generator.random(losses.shape) < right).astype(np.float64)


@dataclass(frozen=True)
class Relative(_Told):
    """The same losses as a share of what the baseline gets right; one pair per item."""

    base_rate: float
    discordance: float
    family: str = "relative score loss"
    support: Support = SIGNED

    def draw(self, harm: float, num_items: int, num_runs: int, generator: np.random.Generator) -> Runs:
        """Losses and the baseline's scores; `harm` is the share of the baseline's score that is lost."""
        pairs, loss = Paired(self.base_rate, self.discordance), harm * self.base_rate
        losses = pairs.draw(loss, num_items, num_runs, generator).harms
        return Runs(losses, pairs.bases(losses, loss, generator))


@dataclass(frozen=True)
class Skewed(_Told):
    """Scores in [0, 1] whose loss is rare and whole (`rare`), small and everywhere (`broad`), or in between (`mixed`)."""

    shape: str
    family: str = "score loss, partial scores"
    support: Support = SIGNED

    def draw(self, harm: float, num_items: int, num_runs: int, generator: np.random.Generator) -> Runs:
        """Noise of mean 0 everywhere, and losses of mean `harm`."""
        shape = (num_runs, num_items)
        if self.shape == "rare":
            harms = 0.9 * (generator.random(shape) < harm / 0.9) + generator.uniform(-0.01, 0.01, shape)
        elif self.shape == "broad":
            harms = 0.95 * _beta(harm / 0.95, 2 / 3, shape, generator) + generator.uniform(-0.05, 0.05, shape)
        elif self.shape == "mixed":
            hit = generator.random(shape) < 0.2
            noise = (generator.random(shape) < 0.1) * generator.uniform(-0.5, 0.5, shape)
            harms = np.where(hit, _beta(harm / 0.2, 0.75, shape, generator), noise)
        else:
            raise ValueError(f"no shape {self.shape!r}")
        return Runs(harms)


@dataclass(frozen=True)
class Rate(_Told):
    """The share of answers with a defect (or of flips): one arm, seeds within items."""

    num_seeds: int
    correlation: float
    family: str = "share of answers"
    support: Support = SHARE

    def draw(self, harm: float, num_items: int, num_runs: int, generator: np.random.Generator) -> Runs:
        """Beta-binomial counts."""
        chances = _beta(harm, self.correlation, (num_runs, num_items), generator)
        return Runs(generator.binomial(self.num_seeds, chances) / self.num_seeds)


@dataclass(frozen=True)
class Tokens(_Told):
    """A harm per token without a limit (KL, nats), alike within items: log-normal between items.

    `spread` is the log's standard deviation between items; a share `broken` of items is `factor` times as bad.
    """

    spread: float
    broken: float = 0.0
    factor: float = 1.0
    family: str = "mean over tokens"
    support: Support = NO_LIMIT

    def draw(self, harm: float, num_items: int, num_runs: int, generator: np.random.Generator) -> Runs:
        """Means of items' tokens."""
        shape = (num_runs, num_items)
        worse = np.where(generator.random(shape) < self.broken, self.factor, 1.0)
        mean = np.exp(self.spread**2 / 2) * (1 + self.broken * (self.factor - 1))
        rates = np.exp(self.spread * generator.standard_normal(shape)) * worse * (harm / mean)
        return Runs(rates)


@dataclass(frozen=True)
class TokenShare(_Told):
    """A share of tokens at which another is likeliest, alike within items; a share `broken` of items has all its tokens so."""

    correlation: float
    broken: float = 0.0
    family: str = "share of tokens"
    support: Support = TOKEN_SHARE

    def draw(self, harm: float, num_items: int, num_runs: int, generator: np.random.Generator) -> Runs:
        """Beta-binomial counts in items of 20 to 400 tokens."""
        shape = (num_runs, num_items)
        sizes = generator.integers(20, 400, shape)
        chances = _beta((harm - self.broken) / (1 - self.broken), self.correlation, shape, generator)
        chances[generator.random(shape) < self.broken] = 1.0
        return Runs(generator.binomial(sizes, chances) / sizes)


@dataclass(frozen=True)
class TokenQuantile(_Told):
    """KL per token, log-normal: the quantile `family`, of which `correlation` is the share of the log's variance between items.

    A quantile is within its margin just where the share of tokens above the margin is small enough, so that share is drawn.
    A share `broken` of items has all its tokens above the margin.
    """

    family: str
    correlation: float
    broken: float = 0.0
    support: Support = SHARE

    def draw(self, harm: float, num_items: int, num_runs: int, generator: np.random.Generator) -> Runs:
        """Shares of tokens above the margin, in items of 20 to 400; `harm` is their mean."""
        shape = (num_runs, num_items)
        sizes = generator.integers(20, 400, shape)
        typical = (harm - self.broken) / (1 - self.broken)
        between = np.sqrt(self.correlation) * generator.standard_normal(shape)
        chances = norm.sf((norm.isf(typical) - between) / np.sqrt(1 - self.correlation))
        chances[generator.random(shape) < self.broken] = 1.0
        return Runs(generator.binomial(sizes, chances) / sizes)
