"""Evidence of checkpoints that were damaged on purpose in, all that the gate makes of it out. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qgate.judge.arms import FLOOR, Arms
from qgate.judge.compare import Case, measure
from qgate.judge.decide import decide
from qgate.judge.resample import Draws
from qgate.judge.selftest.controls import MOST_ITEMS, RESAMPLES, criteria
from qgate.judge.selftest.needs import Need, needs
from qgate.judge.selftest.order import Alike, Gain, Ordered, alike, gains, ordered
from qgate.judge.selftest.series import Series, series
from qgate.judge.selftest.spread import between_items
from qgate.judge.tokens import TokenTable
from qgate.schemas.evidence import Evidence, Row
from qgate.schemas.recipe import Criterion, Statistics


@dataclass(frozen=True)
class Verdicts:
    """One criterion at every level of damage, on the whole evidence."""

    name: str
    margin: float
    verdicts: Mapping[float, str]
    values: Mapping[float, float | None]


@dataclass(frozen=True)
class Damaged:
    """Everything that was found."""

    verdicts: tuple[Verdicts, ...]
    needs: tuple[Need, ...]
    gains: tuple[Gain, ...]
    ordered: tuple[Ordered, ...]
    alike: tuple[Alike, ...]
    between: Mapping[float, float | None]
    """By level: the share of the variance of ln KL that lies between items."""


Shown = Callable[[Sequence[Series]], Iterable[Series]]
"""Hands on what it is given, one after the other, and shows how far that is."""


def examine(
    rows: Sequence[Row],
    tokens: Mapping[str, TokenTable],
    levels: Mapping[str, float],
    statistics: Statistics,
    shown: Shown = lambda all_series: all_series,
) -> Damaged:
    """Judge the arms of `levels` (variant to level of damage). `shown` shows progress."""
    arms = Arms.of(Evidence(rows=tuple(rows)))
    case = Case(arms, tokens, statistics.alpha, Draws(statistics.resamples, statistics.seed, len(arms.clusters)))
    asked = criteria(tuple(sorted({row.evalset for row in rows})))
    found = [each for each in (series(case, criterion, levels) for criterion in asked) if each is not None]
    draws = Draws(RESAMPLES, statistics.seed, MOST_ITEMS)
    in_order = sorted(levels.items(), key=lambda arm: arm[1])
    needed: list[Need] = []
    rising: list[Ordered] = []
    same: list[Alike] = []
    for number, each in enumerate(shown(found)):
        generator = np.random.default_rng([statistics.seed, number])
        needed += needs(each, statistics, draws, generator)
        rising.append(ordered(each, statistics.alpha, draws, generator))
        same += alike(each, statistics.alpha, draws, generator)
    return Damaged(
        verdicts=tuple(_verdicts(case, criterion, levels, statistics) for criterion in asked),
        needs=tuple(needed),
        gains=tuple(gains(found, np.random.default_rng(statistics.seed))),
        ordered=tuple(rising),
        alike=tuple(same),
        between={level: between_items(tokens[arm]) for arm, level in in_order if arm in tokens},
    )


def _verdicts(case: Case, criterion: Criterion, levels: Mapping[str, float], statistics: Statistics) -> Verdicts:
    floor = measure(case, criterion, FLOOR)
    by_level = {
        level: decide(criterion, measure(case, criterion, arm), floor, statistics, case.draws)
        for arm, level in sorted(levels.items(), key=lambda arm: arm[1])
    }
    return Verdicts(
        name=f"{criterion.metric} on {criterion.evalset or 'all sets'}",
        margin=criterion.margin,
        verdicts={level: result.verdict.value for level, result in by_level.items()},
        values={level: result.estimate.value for level, result in by_level.items()},
    )
