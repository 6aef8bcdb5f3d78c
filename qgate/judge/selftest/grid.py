"""Which cells are simulated. Data only.

The whole product of everything would be thousands of cells; each question has the product of what matters to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from qgate.judge.selftest.others import NEWCOMBE, STUDENT
from qgate.judge.selftest.rates import Cell
from qgate.judge.selftest.slices import Sliced
from qgate.judge.selftest.worlds import Paired, Rate, Relative, Skewed, TokenQuantile, Tokens, TokenShare, World

SIZES = (20, 50, 100, 200, 500, 2000)
BASE_RATES = (0.02, 0.1, 0.5, 0.9, 0.98)
DISCORDANCES = (0.0, 0.3, 1.0)
NESTED = ((2, 0.3), (4, 0.1), (4, 0.9), (8, 0.3))
"""(seeds per item, correlation of two answers to one item)"""
SHAPES = ("rare", "mixed", "broad")
SPREADS = (0.5, 1.0, 1.5, 2.0)
QUANTILES = (("kl_p95", 0.05), ("kl_p99", 0.01), ("kl_p999", 0.001))
"""(metric, share of tokens above it)"""
MANY = 5_000
"""Items that a quantile is tried with beside SIZES: `kl_p999` has no upper bound with fewer than 3,000."""
ALIKE = (0.05, 0.2, 0.5, 0.8, 0.95)
"""Shares of the variance of ln KL that lie between items. results/power/summary.md has those of damaged checkpoints."""


def cells() -> tuple[Cell, ...]:
    """All cells, in the table's order."""
    return (*_edges(), *_alike(), *_powers(), *_beyond(), *_others(), *_worst_slices(), *_quantiles())


def _margin(base_rate: float) -> float:
    """A margin that a baseline of this level can lose."""
    return 0.05 if base_rate > 0.05 else 0.01


def _pairs() -> Iterator[Paired]:
    yield from (Paired(rate, discordance) for rate, discordance in product(BASE_RATES, DISCORDANCES))
    for (num_seeds, correlation), rate in product(NESTED, (0.1, 0.5, 0.9)):
        yield Paired(rate, 0.3, num_seeds, correlation)


def _edges() -> Iterator[Cell]:
    """The harm is exactly the margin: a PASS here is an error, and so is a FAIL."""
    for pair, size in product(_pairs(), SIZES):
        yield Cell("edge", pair, _margin(pair.base_rate), _margin(pair.base_rate), size)
    bounded: list[tuple[World, float]] = [(Skewed(shape), 0.05) for shape in SHAPES]
    bounded += [(Relative(rate, each), 0.15) for rate, each in product((0.1, 0.5, 0.9), (0.0, 1.0))]
    bounded += [(Rate(seeds, correlation), 0.02) for seeds, correlation in ((1, 0.0), (4, 0.3), (4, 0.9))]
    bounded += [(Tokens(spread), 0.015) for spread in SPREADS]
    bounded += [(Tokens(0.7, broken=0.05, factor=factor), 0.015) for factor in (20.0, 100.0)]
    bounded += [(TokenShare(correlation), share) for correlation, share in product((0.02, 0.2), (0.001, 0.01, 0.05))]
    bounded += [(TokenShare(0.9), share) for share in (0.01, 0.02, 0.05, 0.1)]
    for (world, margin), size in product(bounded, SIZES):
        yield Cell("edge", world, margin, margin, size)


def _alike() -> Iterator[Cell]:
    """Both arms are the same but for noise."""
    for world, size in product((Paired(0.5, 0.1), Paired(0.5, 0.1, 4, 0.3), Paired(0.9, 0.3)), SIZES):
        yield Cell("A/A", world, 0.0, 0.02, size)


def _powers() -> Iterator[Cell]:
    """What a set of a given size can show, and that more damage never helps."""
    for world, harm, size in product(
        (Paired(0.5, 0.1), Paired(0.5, 0.1, 4, 0.3)), (0.0, 0.01, 0.025, 0.075, 0.1, 0.2), (*SIZES, 650)
    ):
        yield Cell("power", world, harm, 0.05, size)


def _beyond() -> Iterator[Cell]:
    """What a bound that rests on the worst item seen does not promise to catch: faults rarer than one item in twenty."""
    for factor, size in product((20.0, 50.0), (100, 200, 500, 2000)):
        yield Cell("beyond", Tokens(0.7, broken=0.02, factor=factor), 0.015, 0.015, size)
    for broken, size in product((0.005, 0.01, 0.02), (100, 200, 500, 2000)):
        yield Cell("beyond", TokenShare(0.02, broken), 0.05, 0.05, size)


def _others() -> Iterator[Cell]:
    """The same question put to intervals in common use, where there is one pair per item."""
    for pair, size, method in product(_pairs(), SIZES, (NEWCOMBE, STUDENT)):
        if pair.num_seeds == 1:
            yield Cell("other", pair, _margin(pair.base_rate), _margin(pair.base_rate), size, method)


def _worst_slices() -> Iterator[Cell]:
    """The worst slice's harm is the margin: alone, where the others could hide it, and in all, where any may FAIL."""
    for rate, slices, harmed, size in product((0.06, 0.5, 0.9), (3, 8), ("one", "all"), (20, 50, 200)):
        margin = _margin(rate)
        yield Cell("edge", Sliced(rate, slices, harmed), margin, margin, slices * size)
    for slices, size in product((3, 8), (20, 50, 200)):
        yield Cell("A/A", Sliced(0.5, slices, "all"), 0.0, 0.02, slices * size)


def _quantiles() -> Iterator[Cell]:
    """The quantile is its margin, half of its tail also in items that are wholly broken; then the tail is a part of that."""
    for (metric, share), size in product(QUANTILES, (*SIZES, MANY)):
        if size > max(SIZES) and metric != "kl_p999":
            continue
        for correlation in ALIKE:
            yield Cell("edge", TokenQuantile(metric, correlation), share, share, size)
        yield Cell("edge", TokenQuantile(metric, 0.2, broken=share / 2), share, share, size)
        for part in (0.1, 0.25, 0.5):
            yield Cell("power", TokenQuantile(metric, 0.2), share * part, share, size)
