"""One criterion for one arm: pairs and token tables in, a measured harm out. Touches nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import expm1, inf
from typing import Any

import numpy as np

from qgate.judge.arms import FLOOR, Arms, Pair, Scope, slice_of
from qgate.judge.criteria import ROW_METRICS, Support, differs, metric_of
from qgate.judge.paired import counts
from qgate.judge.quantiles import upper_tail
from qgate.judge.resample import Draws
from qgate.judge.sample import Floats, Sample, estimate, from_pairs, from_tokens, interval, nothing, relative
from qgate.judge.tokens import TokenTable
from qgate.schemas.recipe import TOKEN_METRICS, Criterion
from qgate.schemas.verdict import Estimate

MEAN_TOKEN_METRICS: Mapping[str, tuple[Callable[[TokenTable], Floats], Support]] = {
    "kl_mean": (lambda tokens: tokens.kl, Support(0, inf, open=True)),
    "top1_disagreement": (lambda tokens: tokens.disagree, Support(0, 1, open=True)),
    "probability_drop": (lambda tokens: tokens.drop, Support(-1, 1, open=True)),
    "perplexity_increase": (lambda tokens: tokens.log_drop, Support(-inf, inf, open=True)),
}
KL_QUANTILES = {"kl_p95": 0.95, "kl_p99": 0.99, "kl_p999": 0.999}


@dataclass(frozen=True)
class Case:
    """All that a criterion is judged on, laid out once per run."""

    arms: Arms
    tokens: Mapping[str, TokenTable]
    """By arm: variants' names, and FLOOR."""
    alpha: float
    draws: Draws


@dataclass(frozen=True)
class Measured:
    """A harm as measured on one arm, with what decides whether it may be believed."""

    estimate: Estimate
    num_missing: int = 0
    num_expected: int = 0
    baseline_value: float | None = None
    other_value: float | None = None
    bases: Floats | None = None
    """The baseline's own level per item, where the metric is a loss of score."""
    details: dict[str, Any] = field(default_factory=dict)
    open: bool = False
    """Whether the harm has no natural limit, so that its bound rests on the worst item seen."""


def measure(case: Case, criterion: Criterion, arm: str) -> Measured:
    """The criterion's harm on `arm` (a variant's name, or FLOOR)."""
    if criterion.metric in TOKEN_METRICS:
        return _measure_tokens(case, criterion, arm)
    pairs = [pair for pair in case.arms.pairs(arm) if pair.row in Scope.of(criterion)]
    if criterion.metric == "worst_slice_score_loss":
        return _worst_slice(case, criterion, pairs)
    sample = from_pairs(pairs, metric_of(criterion))
    if criterion.metric == "output_disagreement" and arm != FLOOR:
        sample = _over_floor(case, criterion, pairs, sample)
    if criterion.metric == "relative_score_loss":
        sample = relative(sample)
    measured = _measured(sample, estimate(sample, case.alpha, case.draws))
    if criterion.metric == "length_drift":
        return replace(measured, estimate=_either_way(measured.estimate))
    if criterion.metric in {"score_loss", "relative_score_loss", "flip_rate"}:
        return replace(measured, details=counts(pairs, case.alpha))
    return replace(measured, open=metric_of(criterion).support.open)


def _measured(sample: Sample, found: Estimate) -> Measured:
    return Measured(
        estimate=found,
        num_missing=sample.num_missing,
        num_expected=sample.num_expected,
        baseline_value=sample.baseline_value,
        other_value=sample.other_value,
        bases=sample.bases,
    )


def _over_floor(case: Case, criterion: Criterion, pairs: list[Pair], sample: Sample) -> Sample:
    """Changed answers less those that the baseline changes by itself, request by request."""
    changed: dict[tuple[str, str, str, int], list[float]] = defaultdict(list)
    for pair in case.arms.pairs(FLOOR):
        if pair.other is not None and not np.isnan(differs(pair.other)):
            changed[pair.other.pair].append(differs(pair.other))
    noise = {key: sum(values) / len(values) for key, values in changed.items()}
    metric = metric_of(criterion)
    over = replace(metric, harm=lambda reference, other: differs(other) - noise.get(reference.pair, 0.0))
    return from_pairs(pairs, over) if noise else sample


def _either_way(found: Estimate) -> Estimate:
    """Drift up and down are the same harm: the size of a signed mean, from its two one-sided bounds."""
    if found.value is None or found.low is None or found.high is None:
        return found
    size, high = abs(found.value), max(-found.low, found.high)
    return found.model_copy(update={"value": size, "low": max(0.0, found.low, -found.high), "high": high})


def _worst_slice(case: Case, criterion: Criterion, pairs: list[Pair]) -> Measured:
    """The greatest loss over the slices. Its upper bound needs no correction: the slice that is truly worst is covered.

    Its lower bound is corrected for picking the worst of k slices (Bonferroni, the first step of Holm).
    """
    slices: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        label = slice_of(pair.row, str(criterion.by))
        if label is not None:
            slices[label].append(pair)
    metric = ROW_METRICS["score_loss"]
    samples = {label: from_pairs(slices[label], metric) for label in sorted(slices)}
    if not samples or any(sample.num_items == 0 for sample in samples.values()):
        return Measured(nothing(), num_expected=len(pairs), num_missing=len(pairs))
    found = {label: estimate(sample, case.alpha, case.draws) for label, sample in samples.items()}
    strict = {label: interval(sample, case.alpha / len(samples), case.draws).low for label, sample in samples.items()}
    worst = max(found, key=lambda label: (found[label].value or 0.0, label))
    combined = Estimate(
        value=found[worst].value,
        low=max(strict.values()),
        high=max(value.high for value in found.values() if value.high is not None),
        num_items=sum(sample.num_items for sample in samples.values()),
        num_pairs=sum(sample.num_pairs for sample in samples.values()),
        method=f"{found[worst].method}, the lower bound corrected for {len(samples)} slices",
    )
    details = {"worst": worst, "slices": {label: value.model_dump() for label, value in found.items()}}
    return Measured(
        estimate=combined,
        num_missing=sum(sample.num_missing for sample in samples.values()),
        num_expected=sum(sample.num_expected for sample in samples.values()),
        baseline_value=samples[worst].baseline_value,
        other_value=samples[worst].other_value,
        bases=samples[worst].bases,
        details=details,
    )


def _measure_tokens(case: Case, criterion: Criterion, arm: str) -> Measured:
    tokens = case.tokens.get(arm)
    if tokens is None:
        return Measured(nothing(), open=True)
    scope = Scope.of(criterion)
    if criterion.metric in KL_QUANTILES:
        share = 1.0 - KL_QUANTILES[criterion.metric]
        found = upper_tail(tokens, scope, share, case.alpha, case.draws)
    else:
        harms, support = MEAN_TOKEN_METRICS[criterion.metric]
        found = estimate(from_tokens(tokens, harms(tokens), scope, support), case.alpha, case.draws)
    if criterion.metric == "perplexity_increase":
        found = _as_ratio(found)
    details = {"num_not_finite": tokens.num_not_finite} if tokens.num_not_finite else {}
    return Measured(
        estimate=found,
        num_missing=tokens.num_expected - len(tokens.rows),
        num_expected=tokens.num_expected,
        details=details,
        open=True,
    )


def _as_ratio(found: Estimate) -> Estimate:
    """ln of a ratio of perplexities to the rise of the perplexity, as a share."""
    if found.value is None or found.low is None or found.high is None:
        return found
    values = {name: expm1(min(getattr(found, name), 700.0)) for name in ("value", "low", "high")}
    return found.model_copy(update=values)
