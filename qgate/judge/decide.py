"""Measured harms in, the verdict of one criterion out. Touches nothing.

PASS needs the upper bound within the margin, FAIL the lower bound beyond it; all else is INCONCLUSIVE. Absence is never
a success: what is missing, not finite or too little takes a PASS away.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from qgate.judge.arms import Scope
from qgate.judge.compare import KL_QUANTILES, LEAST_COVERED, Measured, support_of
from qgate.judge.criteria import BASELINE_FLOOR
from qgate.judge.power import further_items
from qgate.judge.quantiles import fewest_to_bound
from qgate.judge.resample import Draws, Interval, mean_bounds
from qgate.judge.sample import fewest_items
from qgate.judge.units import harm, percent
from qgate.schemas.recipe import REFERENCES, Criterion, Statistics
from qgate.schemas.verdict import CriterionResult, Verdict

MOST_MISSING = 0.02
"""Share of a criterion's answers that may be missing; above, the arm did not run well enough to be judged."""

SCORE_METRICS = frozenset({"score_loss", "relative_score_loss", "worst_slice_score_loss"})
RISE_METRICS = frozenset({"defect_increase", "truncation_increase"})
GAIN_METRICS = SCORE_METRICS | RISE_METRICS | {"perplexity_increase", "probability_drop"}
NAMES = {
    "score_loss": "score loss",
    "relative_score_loss": "relative score loss",
    "worst_slice_score_loss": "score loss of the worst slice",
    "defect_rate": "share of answers with a new defect",
    "defect_increase": "rise of the share of defective answers",
    "truncation_increase": "rise of the share of answers cut at the token limit",
    "length_drift": "drift of the answers' length",
    "flip_rate": "share of answers that flip between right and wrong",
    "output_disagreement": "share of changed answers over the floor's",
    "kl_mean": "mean KL",
    "kl_p95": "95 % quantile of KL",
    "kl_p99": "99 % quantile of KL",
    "kl_p999": "99.9 % quantile of KL",
    "top1_disagreement": "share of tokens where another token is likeliest",
    "probability_drop": "drop of the tokens' probability",
    "perplexity_increase": "rise of the perplexity",
    "garble_nll_increase": "rise of the baseline's surprise at the answers",
}


@dataclass(frozen=True)
class Judged:
    """A verdict with its reason, before it is put down."""

    verdict: Verdict
    reason: str
    further_items: int | None = None


def decide(
    criterion: Criterion, found: Measured, floor: Measured | None, statistics: Statistics, draws: Draws
) -> CriterionResult:
    """The verdict of one criterion for one variant. `floor` is the A/A arm's measure; None where there is no such arm."""
    judged = (
        _floor_unknown(found, floor)
        or _floor_fails(criterion, floor)
        or _not_finite(found, floor)
        or _missing(criterion, found)
        or _void(criterion, found, statistics, draws)
        or _nothing_measured(found)
        or _by_bounds(criterion, found, statistics, draws)
    )
    estimate = found.estimate
    flags = [f"void slice {label}" for label in found.details.get("void", ())]
    if criterion.metric in GAIN_METRICS and estimate.high is not None and estimate.high < -criterion.margin:
        flags.append("implausible gain")
    more = judged.further_items
    settled = f"; about {more:,} further items would settle it" if more else ""
    return CriterionResult(
        metric=criterion.metric,
        scope=scope_text(criterion),
        margin=criterion.margin,
        estimate=estimate,
        floor=None if floor is None else floor.estimate,
        baseline_value=found.baseline_value,
        variant_value=found.other_value,
        verdict=judged.verdict,
        reason=judged.reason + settled,
        further_items=more,
        flags=tuple(flags),
        details=found.details,
    )


def scope_text(criterion: Criterion) -> str:
    """What the criterion speaks of, for a person."""
    words: list[str] = [REFERENCES] if criterion.of == REFERENCES else []
    words.append(str(Scope.of(criterion)))
    words += [f"by {criterion.by}"] if criterion.by else []
    words += [f"only {', '.join(criterion.defects)}"] if criterion.defects is not None else []
    return " · ".join(words)


def _nothing_measured(found: Measured) -> Judged | None:
    if found.estimate.value is not None:
        return None
    if lost := found.details.get("num_not_finite"):
        return Judged(Verdict.INCONCLUSIVE, f"none of {lost} token scores is a finite number")
    return Judged(Verdict.INCONCLUSIVE, "nothing in scope: no answers or token scores to judge by")


def _not_finite(found: Measured, floor: Measured | None) -> Judged | None:
    """FAIL where the variant has no number for many tokens to which the baseline, asked again, gives one each time."""
    lost, scored = found.details.get("num_lost", 0), found.details.get("num_positions", 0)
    is_known = floor is not None and floor.estimate.value is not None and not floor.details.get("num_lost")
    if lost <= MOST_MISSING * scored or not is_known:
        return None
    return Judged(
        Verdict.FAIL, f"{lost} of {scored} token scores are not finite numbers (NaN logits); all the baseline's are"
    )


def _missing(criterion: Criterion, found: Measured) -> Judged | None:
    """Too few answers came, whatever the rest says: a baseline that cannot do the task either excuses nothing."""
    if found.num_missing <= MOST_MISSING * found.num_expected:
        return None
    what, missing = f"{_name(criterion, found)}{_scope(criterion)}", found.details.get("missing", criterion.of)
    if found.estimate.value is None:
        reason = f"none of the {found.num_expected} {missing} to judge {what} by could be compared"
    else:
        reason = (
            f"{found.num_missing} of {found.num_expected} {missing} in scope are missing: too many to judge {what} "
            f"{_show(criterion, found.estimate.value)}"
        )
    return Judged(Verdict.INCONCLUSIVE, reason)


def _floor_unknown(found: Measured, floor: Measured | None) -> Judged | None:
    """INVALID where the baseline was asked again, and too little of what came can be compared."""
    if floor is None or (floor.estimate.value is None and found.estimate.value is None):
        return None
    if floor.estimate.value is None:
        what = "the A/A arm has nothing to compare here"
    elif floor.num_missing > MOST_MISSING * floor.num_expected:
        what = f"the A/A arm lacks {floor.num_missing} of {floor.num_expected} to compare"
    else:
        return None
    return Judged(Verdict.INVALID, f"{what}: the engine's own noise is unknown")


def _floor_fails(criterion: Criterion, floor: Measured | None) -> Judged | None:
    """INVALID where the baseline against itself fails the criterion, or leaves it no room to fail."""
    if floor is None or floor.estimate.low is None or floor.estimate.high is None:
        return None
    low, high = floor.estimate.low, floor.estimate.high
    if criterion.metric == "output_disagreement":
        if high <= 1 - criterion.margin:
            return None
        what = (
            f"the baseline changes {_show(criterion, floor.estimate.value)} of its own answers "
            f"({_bound(high, criterion, 'at most')}), too many to tell more"
        )
        margin = "a narrower margin"  # it must leave room for the floor below 100 %
    elif low > criterion.margin:
        what = f"the baseline against itself has {_name(criterion, floor)} {_show(criterion, floor.estimate.value)}"
        what += f" ({_bound(low, criterion, 'at least')})"
        margin = "a wider margin"
    else:
        return None
    return Judged(
        Verdict.INVALID,
        f"{what}: the engine is too noisy for the margin {_show(criterion, criterion.margin)}; use "
        f"`determinism: repeatable`, the same concurrency in both runs, {margin}, or more items",
    )


def _void(criterion: Criterion, found: Measured, statistics: Statistics, draws: Draws) -> Judged | None:
    room, needed = _room(criterion, found, statistics, draws)
    if room.high > needed:
        return None
    if criterion.metric in RISE_METRICS:
        return Judged(Verdict.VOID, _no_room(criterion, found))
    return Judged(
        Verdict.VOID,
        f"the baseline itself scores {percent(found.baseline_value)} here (at most {percent(room.high)}), so there is "
        f"no {NAMES[criterion.metric]} beyond {percent(needed)} to be seen",
    )


def _room(criterion: Criterion, found: Measured, statistics: Statistics, draws: Draws) -> tuple[Interval, float]:
    """How much the baseline's own level leaves to lose (its score) or to rise by (the rest of 1), and what it must be
    above for a harm beyond the margin to show. No end for a metric that is neither a loss of score nor such a rise."""
    if criterion.metric not in SCORE_METRICS | RISE_METRICS or found.bases is None or not found.bases.size:
        return Interval(inf, inf), 0.0
    if criterion.metric in RISE_METRICS:
        return mean_bounds(1.0 - found.bases, 0.0, 1.0, statistics.alpha, draws), criterion.margin
    needed = BASELINE_FLOOR if criterion.metric == "relative_score_loss" else max(BASELINE_FLOOR, criterion.margin)
    return mean_bounds(found.bases, 0.0, 1.0, statistics.alpha, draws), needed


def _no_room(criterion: Criterion, found: Measured) -> str:
    return (
        f"the baseline's own share is {percent(found.baseline_value)} here, so a "
        f"{NAMES[criterion.metric]} beyond {_show(criterion, criterion.margin)} could not show"
    )


def _by_bounds(criterion: Criterion, found: Measured, statistics: Statistics, draws: Draws) -> Judged:
    estimate, margin = found.estimate, criterion.margin
    what = f"{_name(criterion, found)}{_scope(criterion)} {_show(criterion, estimate.value)}"
    sure = f"{100 * (1 - statistics.alpha):g} % sure: "
    if estimate.low is not None and estimate.low > margin:
        bound = sure + _bound(estimate.low, criterion, "at least")
        return Judged(Verdict.FAIL, f"{what} ({bound}) is beyond the margin {_show(criterion, margin)}")
    if estimate.high is None or not estimate.high <= margin:
        bound = sure + _bound(estimate.high, criterion, "at most")
        reason = f"{what} ({bound}) is not settled against the margin {_show(criterion, margin)}"
        more = further_items(estimate, margin, statistics.alpha, statistics.power)
        short = fewest_to_pass(criterion, statistics) - estimate.num_items
        if short > 0 and estimate.value is not None and estimate.value <= margin:
            more = max(more or 0, short)
        return Judged(Verdict.INCONCLUSIVE, reason, more)
    doubt = _doubt(criterion, found, statistics, draws)
    if doubt is not None:
        return doubt
    bound = sure + _bound(estimate.high, criterion, "at most")
    return Judged(Verdict.PASS, f"{what} ({bound}) is within the margin {_show(criterion, margin)}")


def _doubt(criterion: Criterion, found: Measured, statistics: Statistics, draws: Draws) -> Judged | None:
    """Why a bound within the margin is not yet a PASS."""
    if found.details.get("num_not_finite"):
        return Judged(Verdict.INCONCLUSIVE, f"{found.details['num_not_finite']} token scores are not finite numbers")
    if (covered := found.details.get("covered")) is not None:
        return Judged(
            Verdict.INCONCLUSIVE,
            f"{_name(criterion, found)} {_show(criterion, found.estimate.value)} is the bound from {percent(covered)} of the "
            f"baseline's probability, too little to pass by (at least {percent(LEAST_COVERED)}): raise `top_k` (to 20 at "
            "most), or ask for top1_disagreement or perplexity_increase",
        )
    room, needed = _room(criterion, found, statistics, draws)
    if room.low <= needed and criterion.metric in RISE_METRICS:
        return Judged(Verdict.INCONCLUSIVE, _no_room(criterion, found))
    if room.low <= needed:
        return Judged(
            Verdict.INCONCLUSIVE,
            f"the baseline itself scores only {percent(found.baseline_value)} (perhaps {percent(room.low)}): a loss "
            f"beyond {percent(needed)} could not show",
        )
    least = fewest_to_pass(criterion, statistics)
    if found.estimate.num_items < least:
        return Judged(
            Verdict.INCONCLUSIVE,
            f"{_name(criterion, found)} {_show(criterion, found.estimate.value)}, but {found.estimate.num_items} items "
            "are too few to have seen a rare fault",
            least - found.estimate.num_items,
        )
    return None


def fewest_to_pass(criterion: Criterion, statistics: Statistics) -> int:
    """Items without which the criterion does not pass."""
    if criterion.metric in KL_QUANTILES:
        return fewest_to_bound(1.0 - KL_QUANTILES[criterion.metric], statistics.alpha)
    return fewest_items(support_of(criterion.metric), criterion.margin, statistics.alpha)


def _name(criterion: Criterion, found: Measured) -> str:
    worst = found.details.get("worst")
    of = f" of the {REFERENCES}" if criterion.of == REFERENCES else ""
    return NAMES[criterion.metric] + of + (f" ({criterion.by}={worst})" if worst is not None else "")


def _scope(criterion: Criterion) -> str:
    return "" if Scope.of(criterion) == Scope() else f" on {Scope.of(criterion)}"


def _show(criterion: Criterion, value: float | None) -> str:
    return "unknown" if value is None else harm(criterion.metric, value)


def _bound(value: float | None, criterion: Criterion, word: str) -> str:
    return f"{word} {_show(criterion, value)}"
