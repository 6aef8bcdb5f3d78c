"""One criterion for one arm: pairs and token tables in, a measured harm out. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import expm1, inf
from typing import Any

import numpy as np

from qgate.judge.arms import FLOOR, Arms, Bools, Scope, by_label, slice_of
from qgate.judge.criteria import BASELINE_FLOOR, Support, metric_of
from qgate.judge.harms import Harms, read
from qgate.judge.paired import counts
from qgate.judge.quantiles import upper_tail
from qgate.judge.resample import Draws, Floats, mean_bounds
from qgate.judge.sample import Sample, estimate, lower_bound, nothing, of_tokens, relative
from qgate.judge.tokens import TokenTable
from qgate.schemas.recipe import REFERENCES, TOKEN_METRICS, Criterion
from qgate.schemas.verdict import Estimate

MEAN_TOKEN_METRICS: Mapping[str, tuple[Callable[[TokenTable], Floats], Support]] = {
    "kl_mean": (lambda tokens: tokens.kl, Support(0, inf, open=True)),
    "top1_disagreement": (lambda tokens: tokens.disagree, Support(0, 1, open=True)),
    "probability_drop": (lambda tokens: tokens.drop, Support(-1, 1, open=True)),
    "perplexity_increase": (lambda tokens: tokens.log_drop, Support(-inf, inf, open=True)),
}
LEAST_COVERED = 0.5
"""Share of the baseline's probability that must be compared token by token for a bound on KL to pass anything."""
KL_QUANTILES = {"kl_p95": 0.95, "kl_p99": 0.99, "kl_p999": 0.999}


@dataclass(frozen=True)
class Case:
    """All that is judged, laid out once per run, and the columns that were read off it so far."""

    arms: Arms
    tokens: Mapping[str, TokenTable]
    """By arm: variants' names, and FLOOR."""
    alpha: float
    draws: Draws
    references: Mapping[str, TokenTable] = field(default_factory=dict)
    """The same of right answers."""

    def tables(self, criterion: Criterion) -> Mapping[str, TokenTable]:
        """By arm, those that a criterion of a token metric speaks of."""
        return self.references if criterion.of == REFERENCES else self.tokens

    @cached_property
    def _read(self) -> dict[tuple[str, str, tuple[str, ...] | None], Harms]:
        return {}

    def harms(self, arm: str, metric: str, defects: tuple[str, ...] | None = None) -> Harms:
        """A metric read off every pair of an arm, once."""
        key = (arm, metric, defects)
        if key not in self._read:
            self._read[key] = read(self.arms.pairs(arm), metric_of(metric, defects))
        return self._read[key]


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


def support_of(metric: str) -> Support:
    """The range of an item's harm. KeyError for a quantile, which is no mean over items."""
    return MEAN_TOKEN_METRICS[metric][1] if metric in MEAN_TOKEN_METRICS else metric_of(metric).support


def measure(case: Case, criterion: Criterion, arm: str) -> Measured:
    """The criterion's harm on `arm` (a variant's name, or FLOOR)."""
    if criterion.metric in TOKEN_METRICS:
        return _measure_tokens(case, criterion, arm)
    laid = case.arms.pairs(arm)
    inside = laid.within(Scope.of(criterion))
    harms = case.harms(arm, criterion.metric, criterion.defects)
    if criterion.metric == "worst_slice_score_loss":
        by = [
            slice_of(pair.row, str(criterion.by)) if keep else None
            for pair, keep in zip(laid.pairs, inside, strict=True)
        ]
        return _worst_slice(case, harms, by_label(by))
    if criterion.metric == "output_disagreement" and arm != FLOOR and case.arms.has(FLOOR):
        harms = harms.over(case.harms(FLOOR, criterion.metric))
    sample = harms.sample(inside)
    if criterion.metric == "relative_score_loss":
        sample = relative(sample)
    measured = _measured(sample, estimate(sample, case.alpha, case.draws))
    if criterion.metric == "length_drift":
        return replace(measured, estimate=_either_way(measured.estimate))
    if criterion.metric in {"score_loss", "relative_score_loss", "flip_rate"}:
        pairs = [pair for pair, keep in zip(laid.pairs, inside, strict=True) if keep]
        return replace(measured, details=counts(pairs, case.alpha))
    return measured


def _measured(sample: Sample, found: Estimate) -> Measured:
    return Measured(
        estimate=found,
        num_missing=sample.num_missing,
        num_expected=sample.num_expected,
        baseline_value=sample.baseline_value,
        other_value=sample.other_value,
        bases=sample.bases,
    )


def _either_way(found: Estimate) -> Estimate:
    """Drift up and down are the same harm: the size of a signed mean, from its two one-sided bounds."""
    if found.value is None or found.low is None or found.high is None:
        return found
    size, high = abs(found.value), max(-found.low, found.high)
    return found.model_copy(update={"value": size, "low": max(0.0, found.low, -found.high), "high": high})


def _worst_slice(case: Case, harms: Harms, slices: Mapping[str, Bools]) -> Measured:
    """The greatest loss over the slices. Its upper bound needs no correction: the slice that is truly worst is covered.

    Its lower bound is corrected for picking the worst of k slices (Bonferroni, the first step of Holm). Slices that the
    baseline cannot do are left out and named, unless it can do none.
    """
    every = {label: harms.sample(inside) for label, inside in slices.items()}
    void = [label for label, sample in every.items() if _cannot_do(case, sample)]
    samples = every if len(void) == len(every) else {label: every[label] for label in every if label not in void}
    empty = {label: sample for label, sample in samples.items() if sample.num_items == 0}
    if empty or not samples:
        num_expected = sum(sample.num_expected for sample in empty.values())
        named = {"worst": next(iter(empty))} if empty else {}
        return Measured(nothing(), num_expected=num_expected, num_missing=num_expected, details=named)
    found = {label: estimate(sample, case.alpha, case.draws) for label, sample in samples.items()}
    worst = max(found, key=lambda label: (found[label].value or 0.0, label))
    combined = Estimate(
        value=found[worst].value,
        low=_strict_low(case, samples, found),
        high=max(value.high for value in found.values() if value.high is not None),
        num_items=sum(sample.num_items for sample in samples.values()),
        num_pairs=sum(sample.num_pairs for sample in samples.values()),
        method=f"{found[worst].method}, the lower bound corrected for {len(samples)} slices",
    )
    details: dict[str, Any] = {"worst": worst, "slices": {label: each.model_dump() for label, each in found.items()}}
    details |= {"void": void} if void else {}
    return Measured(
        estimate=combined,
        num_missing=sum(sample.num_missing for sample in every.values()),
        num_expected=sum(sample.num_expected for sample in every.values()),
        baseline_value=samples[worst].baseline_value,
        other_value=samples[worst].other_value,
        bases=samples[worst].bases,
        details=details,
    )


def _strict_low(case: Case, samples: Mapping[str, Sample], found: Mapping[str, Estimate]) -> float:
    """The greatest of the slices' lower bounds at alpha/k each, looked for where those at alpha are highest."""
    best, alpha = -inf, case.alpha / len(samples)
    for low, label in sorted(
        ((each.low, label) for label, each in found.items() if each.low is not None), reverse=True
    ):
        if low <= best:
            break
        best = max(best, lower_bound(samples[label], alpha, case.draws))
    return best


def _cannot_do(case: Case, sample: Sample) -> bool:
    if sample.bases is None or not sample.num_items:
        return False
    return mean_bounds(sample.bases, 0.0, 1.0, case.alpha, case.draws).high <= BASELINE_FLOOR


def _measure_tokens(case: Case, criterion: Criterion, arm: str) -> Measured:
    tokens = case.tables(criterion).get(arm)
    if tokens is None:
        return Measured(nothing())
    scope = Scope.of(criterion)
    inside = tokens.within(scope)
    if criterion.metric in KL_QUANTILES:
        share = 1.0 - KL_QUANTILES[criterion.metric]
        found = upper_tail(tokens, inside, share, case.alpha, case.draws)
    else:
        harms, support = MEAN_TOKEN_METRICS[criterion.metric]
        found = estimate(of_tokens(tokens, harms(tokens), inside, support), case.alpha, case.draws)
    if criterion.metric == "perplexity_increase":
        found = _as_ratio(found)
    scores = (tokens.num_lost(scope), tokens.num_lost(scope) + int(inside.sum()))
    answers = case.arms.num_absent(arm, scope)
    details = _scored(tokens, inside[tokens.answer], criterion.metric)
    if _share(answers) > _share(scores):  # only answers that came are scored, and right answers whatever came
        scores, details = answers, details | {"missing": "answers"}
    return Measured(estimate=found, num_missing=scores[0], num_expected=scores[1], details=details)


def _share(count: tuple[int, int]) -> float:
    return count[0] / max(count[1], 1)


def _scored(tokens: TokenTable, inside: Bools, metric: str) -> dict[str, Any]:
    """Of the positions bool[T] in scope: how many there are where some are no numbers, and how loose a loose KL is."""
    details: dict[str, Any] = {}
    if num_not_finite := int((np.isnan(tokens.log_drop) | np.isnan(tokens.kl))[inside].sum()):
        details = {
            "num_not_finite": num_not_finite,
            "num_lost": int(np.isnan(tokens.log_drop[inside]).sum()),
            "num_positions": int(inside.sum()),
        }
    if metric in {"kl_mean", *KL_QUANTILES} and inside.any():
        covered = float(np.nanmean(tokens.covered[inside]))
        details |= {"covered": covered} if covered < LEAST_COVERED else {}
    return details


def _as_ratio(found: Estimate) -> Estimate:
    """ln of a ratio of perplexities to the rise of the perplexity, as a share."""
    if found.value is None or found.low is None or found.high is None:
        return found
    values = {name: expm1(min(getattr(found, name), 700.0)) for name in ("value", "low", "high")}
    return found.model_copy(update=values)
