"""What each metric that is read off answers says of one pair: two rows in, a harm out. Touches nothing.

A harm is 0 where the other answer is as good as the reference, and larger where it is worse. NaN says that the pair
cannot tell, which counts as missing. An answer that did not come is the worst there is, never a gap.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import inf, isfinite, isnan, nan

from qgate.judge.defects.seen import CUT, ENDED
from qgate.judge.observe import came
from qgate.schemas.evidence import Row
from qgate.schemas.recipe import BASELINE

RIGHT = 0.5
"""A score of at least this is a right answer, where right and wrong are counted."""

BASELINE_FLOOR = 0.05
"""A baseline whose mean score is at most this cannot do the task, and nothing can be lost."""

Harm = Callable[[Row, Row], float]
Level = Callable[[Row], float]


@dataclass(frozen=True)
class Support:
    """The least and greatest harm of an item. Where `open`, the greatest is beyond reach and the worst seen is used."""

    least: float
    greatest: float
    open: bool = False


@dataclass(frozen=True)
class RowMetric:
    """A metric that is a mean over pairs: the harm of a pair, its range, and the level that either arm has."""

    harm: Harm
    level: Level
    support: Support
    of_text: bool = False
    """Whether it is about the text as written, and so says nothing of an option that was only ranked."""

    def applies(self, row: Row) -> bool:
        """Whether the metric can say anything of an answer of this kind."""
        return row.written or not self.of_text


def metric_of(metric: str, defects: Collection[str] | None = None) -> RowMetric:
    """The row metric of that name, for some defects only where it is about defects. KeyError for a token metric."""
    if defects is not None:
        return _defect_metric(metric, defects)
    return ROW_METRICS[metric]


def score(row: Row) -> float:
    """The answer's score in [0, 1], which the bounds rest on; NaN where there is none, or another number."""
    return row.score if row.score is not None and 0 <= row.score <= 1 else nan


def right(row: Row) -> float:
    """1 for a right answer, 0 for a wrong one, NaN where there is no score."""
    return float(score(row) >= RIGHT) if isfinite(score(row)) else nan


def truncated(row: Row) -> float:
    """1 where the token limit ended the answer; NaN where none came, or where neither its end nor its length is told."""
    if not came(row):
        return nan
    if row.status == "truncated" or row.finish_reason in CUT:
        return 1.0
    return 0.0 if row.finish_reason in ENDED or row.completion_tokens is not None else nan


def length(row: Row) -> float:
    """Tokens of the answer; NaN where unknown."""
    return nan if row.completion_tokens is None or not came(row) else float(row.completion_tokens)


def differs(row: Row) -> float:
    """1 where the answer is not the reference's, token for token; NaN where that is unknown."""
    if row.variant == BASELINE and row.replicate == 0:
        return 0.0  # the reference itself
    return nan if row.identical is None or not came(row) else float(not row.identical)


def garble(row: Row) -> float:
    """The baseline's mean negative log-likelihood per token of this answer, nats; NaN where not scored."""
    return nan if row.baseline_nll is None or not isfinite(row.baseline_nll) else row.baseline_nll


def _difference(level: Level, sign: float) -> Harm:
    return lambda reference, other: sign * (level(other) - level(reference))


def _drift(reference: Row, other: Row) -> float:
    before, after = length(reference), length(other)
    if isnan(before + after):
        return nan
    longest = max(before, after)
    return (after - before) / longest if longest else 0.0


def _flip(reference: Row, other: Row) -> float:
    return abs(right(reference) - right(other))


ONE_SIDED = frozenset({"truncation"})
"""Defects that are only seen beside the baseline's answer, so that the baseline cannot have them: a rise of their share
would count one way what also happens the other way. `truncation_increase` counts both ways."""


def all_defects(row: Row) -> frozenset[str]:
    """Names of the defects of an answer, those included that only the baseline's own answer excuses."""
    return frozenset({hit.name for hit in row.defects}.union(row.excused or ()) - ONE_SIDED)


GARBAGE = frozenset({"empty", "mojibake", "nonfinite_logprob", "token_flood", "token_salad"})
"""Defects that no sound model has in more than a few answers. Loops are not among them: base models do loop."""


def garbage_of(arm: Iterable[Row], whose: str) -> str | None:
    """What is said of an arm most of whose answers to a set are garbage; None where there is no such set."""
    by_set: dict[str, list[Row]] = defaultdict(list)
    for row in arm:
        if came(row) and row.written:
            by_set[row.evalset].append(row)
    for name, written in sorted(by_set.items()):
        found = Counter(min(names) for row in written if (names := all_defects(row) & GARBAGE))
        if 2 * found.total() > len(written):
            kinds = ", ".join(kind for kind, _ in found.most_common())
            return f"{found.total()} of {len(written)} answers of {whose} to {name} are garbage ({kinds})"
    return None


def _defect_metric(metric: str, names: Collection[str] | None) -> RowMetric:
    def has(row: Row, more: Collection[str] = ()) -> float:
        found = {hit.name for hit in row.defects}.union(more)
        return float(not came(row) or bool(found - ONE_SIDED if names is None else found.intersection(names)))

    def level(row: Row) -> float:
        return has(row, row.excused or ())

    def rise(reference: Row, other: Row) -> float:
        """Where nobody looked whether an excused defect is there, it is: nothing is won by not looking."""
        unknown = {hit.name for hit in reference.defects} if other.excused is None else other.excused
        return has(other, unknown) - has(reference)

    if metric == "defect_rate":
        return RowMetric(lambda _, other: has(other), level, Support(0, 1), of_text=True)
    return RowMetric(rise, level, Support(-1, 1), of_text=True)


ROW_METRICS: dict[str, RowMetric] = {
    "score_loss": RowMetric(_difference(score, -1.0), score, Support(-1, 1)),
    "relative_score_loss": RowMetric(_difference(score, -1.0), score, Support(-1, 1)),
    "worst_slice_score_loss": RowMetric(_difference(score, -1.0), score, Support(-1, 1)),
    "defect_rate": _defect_metric("defect_rate", None),
    "defect_increase": _defect_metric("defect_increase", None),
    "truncation_increase": RowMetric(_difference(truncated, 1.0), truncated, Support(-1, 1), of_text=True),
    "length_drift": RowMetric(_drift, length, Support(-1, 1), of_text=True),
    "flip_rate": RowMetric(_flip, right, Support(0, 1)),
    "output_disagreement": RowMetric(lambda _, other: differs(other), differs, Support(-1, 1)),
    "garble_nll_increase": RowMetric(_difference(garble, 1.0), garble, Support(-inf, inf, open=True), of_text=True),
}
