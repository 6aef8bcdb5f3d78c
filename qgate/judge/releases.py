"""The rows of two runs in, what got worse from one to the other out, variant by variant and set by set. Touches nothing.

The earlier run's answers take the baseline's place, and the margin is 0: FAIL says that something is worse for sure,
PASS that it is not. All comparisons together are wrong with the error that one is allowed (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from qgate.judge.arms import Arms, PairKey
from qgate.judge.compare import Case, measure
from qgate.judge.decide import MOST_MISSING, decide
from qgate.judge.resample import Draws
from qgate.schemas.evidence import DefectHit, Evidence, Row
from qgate.schemas.recipe import BASELINE, Criterion, Metric, Statistics
from qgate.schemas.verdict import CriterionResult, Verdict

METRICS: tuple[Metric, ...] = ("score_loss", "defect_increase", "truncation_increase")
LATER = "later"
"""Name of the later run's arm."""


@dataclass(frozen=True)
class Change:
    """One metric of one variant on one set, from the earlier run to the later."""

    variant: str
    evalset: str
    result: CriterionResult
    num_missing: int
    """Answers that one of the runs lacks, of `num_expected`."""
    num_expected: int

    @property
    def is_unknown(self) -> bool:
        """Whether so many answers did not come that nothing can be said."""
        return self.num_missing > MOST_MISSING * self.num_expected

    @property
    def is_worse(self) -> bool:
        """Whether it got worse for sure."""
        return self.result.verdict is Verdict.FAIL

    @property
    def is_better(self) -> bool:
        """Whether it got better for sure."""
        high = self.result.estimate.high
        return high is not None and high < 0


def compare(earlier: Iterable[Row], later: Iterable[Row], statistics: Statistics) -> tuple[Change, ...]:
    """Every change on requests that both runs have, in the order of the later run's variants and sets."""
    before, after = _by_variant(earlier), _by_variant(later)
    shared = {name: before[name].keys() & after[name].keys() for name in after if name in before}
    wanted = [
        (name, evalset, metric)
        for name, keys in shared.items()
        for evalset in dict.fromkeys(key[0] for key in after[name] if key in keys)
        for metric in METRICS
    ]
    each = statistics.model_copy(update={"alpha": statistics.alpha / max(1, len(wanted))})
    arms = {name: _arms(before[name], after[name], keys) for name, keys in shared.items()}
    draws = Draws(each.resamples, each.seed, width=max([1, *(len(arm.clusters) for arm in arms.values())]))
    cases = {name: Case(arm, {}, each.alpha, draws) for name, arm in arms.items()}
    return tuple(
        _change(name, cases[name], Criterion(metric=metric, margin=0.0, evalset=evalset), each)
        for name, evalset, metric in wanted
    )


def _change(variant: str, case: Case, criterion: Criterion, statistics: Statistics) -> Change:
    found = measure(case, criterion, LATER)
    result = decide(criterion, found, None, statistics, case.draws)
    return Change(variant, str(criterion.evalset), result, found.num_missing, found.num_expected)


def _by_variant(rows: Iterable[Row]) -> dict[str, dict[PairKey, Row]]:
    found: dict[str, dict[PairKey, Row]] = {}
    for row in rows:
        if row.replicate == 0:
            found.setdefault(row.variant, {})[row.pair] = row
    return found


def _arms(before: dict[PairKey, Row], after: dict[PairKey, Row], keys: Iterable[PairKey]) -> Arms:
    shared = sorted(keys)
    reference = [_as_reference(before[key]) for key in shared]
    return Arms.of(Evidence(rows=(*reference, *(_as_later(after[key]) for key in shared))))


def _as_reference(row: Row) -> Row:
    """As the baseline's rows are: with every defect that the answer has, whoever excused it before."""
    names = {hit.name for hit in row.defects}
    more = tuple(DefectHit(name) for name in row.excused or () if name not in names)
    return replace(row, variant=BASELINE, defects=(*row.defects, *more), excused=())


def _as_later(row: Row) -> Row:
    """Nothing excuses a baseline's defects; a variant's may be excused by its own baseline, and are counted still."""
    return replace(row, variant=LATER, excused=() if row.variant == BASELINE else row.excused)
