"""A judged case and one criterion in, its harms per item at every level of damage out, item for item. Touches nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from qgate.judge.arms import FLOOR, Bools, Scope
from qgate.judge.compare import MEAN_TOKEN_METRICS, Case, support_of
from qgate.judge.criteria import Support
from qgate.judge.resample import Floats
from qgate.judge.tokens import TokenTable
from qgate.schemas.recipe import TOKEN_METRICS, Criterion


@dataclass(frozen=True)
class Series:
    """One criterion at K levels on the same n items: float64[K, n], the harm of each item at each level.

    Level 0 is the A/A arm. Items that an arm has no harm for are left out of all.
    """

    criterion: Criterion
    levels: tuple[float, ...]
    harms: Floats
    support: Support

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.criterion.metric} on {self.scope}"

    @property
    def scope(self) -> str:
        """The set's name."""
        return self.criterion.evalset or "all sets"

    @property
    def num_items(self) -> int:
        """Items that every level has."""
        return int(self.harms.shape[1])

    @property
    def values(self) -> Floats:
        """float64[K]: the harm at each level."""
        return np.asarray(self.harms.mean(axis=1))

    @property
    def unharmed(self) -> float:
        """What no damage looks like: 0 where harm and gain are both counted, else what the A/A arm has."""
        return 0.0 if self.support.least < 0 else max(0.0, float(self.values[0]))


def series(case: Case, criterion: Criterion, arms: Mapping[str, float]) -> Series | None:
    """The criterion over `arms` (variant to level of damage) and the A/A arm; None where they have no items in common."""
    levels = {FLOOR: 0.0, **dict(sorted(arms.items(), key=lambda arm: arm[1]))}
    if criterion.metric in TOKEN_METRICS:
        found = _of_tokens(case, criterion, list(levels))
    else:
        found = _of_rows(case, criterion, list(levels))
    if found is None or found.size == 0:
        return None
    return Series(criterion, tuple(levels.values()), found, support_of(criterion.metric))


def _of_rows(case: Case, criterion: Criterion, arms: Sequence[str]) -> Floats:
    """Mean harm per item; every item weighs the same."""
    means = np.full((len(arms), len(case.arms.clusters)), np.nan)
    for number, arm in enumerate(arms):
        harms = case.harms(arm, criterion.metric, criterion.defects)
        use = case.arms.pairs(arm).within(Scope.of(criterion)) & ~np.isnan(harms.harm)
        counts = np.bincount(harms.cluster[use], minlength=means.shape[1])
        sums = np.bincount(harms.cluster[use], weights=harms.harm[use], minlength=means.shape[1])
        means[number, counts > 0] = sums[counts > 0] / counts[counts > 0]
    common = ~np.isnan(means).any(axis=0)
    return means[:, common]


def _of_tokens(case: Case, criterion: Criterion, arms: Sequence[str]) -> Floats | None:
    """Means over the tokens of each item, of the answers and positions that every arm has a finite harm for."""
    tables = [case.tables(criterion).get(arm) for arm in arms]
    known = [table for table in tables if table is not None]
    if len(known) < len(arms):
        return None
    answers = [{row.request_id for row in table.rows} for table in known]
    common = reduce(set.intersection, answers)
    columns = [_columns(table, criterion, common) for table in known]
    harms = np.array([harm for harm, _ in columns])
    finite = np.isfinite(harms).all(axis=0)
    cluster = columns[0][1][finite]
    sizes = np.bincount(cluster)
    some = sizes > 0
    sums = np.array([np.bincount(cluster, weights=row[finite], minlength=sizes.size)[some] for row in harms])
    return np.asarray(sums / sizes[some])


def _columns(
    table: TokenTable, criterion: Criterion, common: set[str]
) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Harm and item of each position of the common answers in scope, in order of the answers' names."""
    scope = Scope.of(criterion)
    wanted: Bools = np.array([row.request_id in common and row in scope for row in table.rows], dtype=bool)
    use = wanted[table.answer]
    items = sorted({row.cluster for row, keep in zip(table.rows, wanted, strict=True) if keep})
    number = {name: index for index, name in enumerate(items)}
    of_answer = np.array([number.get(row.cluster, -1) for row in table.rows], dtype=np.int64)
    return MEAN_TOKEN_METRICS[criterion.metric][0](table)[use], of_answer[table.answer[use]]
