"""Evidence and recipe in, the verdict sheet out. Touches nothing: no disk, clock, network or hidden random state.

All criteria of a tier must pass for a variant to pass. Such an intersection needs no correction: a variant that is truly
beyond one margin passes that criterion with probability alpha at most, and so passes them all no more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from qgate.judge import breakdown, examples, findings
from qgate.judge.arms import FLOOR, Arms
from qgate.judge.compare import Case, Measured, measure
from qgate.judge.criteria import garbage_of
from qgate.judge.decide import decide
from qgate.judge.resample import Draws
from qgate.judge.tokens import TokenTable, reference_rows, table
from qgate.schemas.answers import TokenScores
from qgate.schemas.evidence import Evidence, Row
from qgate.schemas.recipe import BASELINE, Criterion, Recipe, Tier
from qgate.schemas.verdict import CriterionResult, TierVerdict, VariantVerdict, Verdict, VerdictSheet


def judge(evidence: Evidence, recipe: Recipe, run_id: str) -> VerdictSheet:
    """Judge every variant of the recipe in every tier on the evidence of one run."""
    bench = Bench.of(evidence, recipe)
    breakdowns = breakdown.break_down(bench.case, tuple(recipe.variants))
    return VerdictSheet(
        run_id=run_id,
        recipe=recipe.name,
        engine=evidence.engine,
        tiers=tuple(_judge_tier(bench, name, tier) for name, tier in recipe.tiers.items()),
        findings=findings.find(bench.case, evidence, recipe, breakdowns),
        breakdowns=breakdowns,
        examples=examples.worst(bench.case.arms, tuple(recipe.variants), evidence.prompts),
        summary=findings.summarise(bench.case, evidence, recipe),
    )


@dataclass(frozen=True)
class Bench:
    """A run's evidence laid out for judging, and what has been measured on it so far."""

    evidence: Evidence
    recipe: Recipe
    case: Case

    @classmethod
    def of(cls, evidence: Evidence, recipe: Recipe) -> Bench:
        """Lay out the evidence."""
        arms = Arms.of(evidence)
        statistics = recipe.statistics
        draws = Draws(statistics.resamples, statistics.seed, width=max(len(arms.clusters), 1))
        tokens = _tables(arms.reference.values(), evidence.token_scores)
        references = _tables(reference_rows(arms.reference.values()), evidence.reference_scores)
        return cls(evidence, recipe, Case(arms, tokens, statistics.alpha, draws, references))

    @cached_property
    def _measured(self) -> dict[tuple[str, str], Measured]:
        return {}

    @cached_property
    def garbage(self) -> str | None:
        """Why nothing can be judged by the baseline's answers: of harm to garbage nothing can be seen, and among other
        answers it would hide it."""
        said = garbage_of(self.case.arms.reference.values(), "the baseline itself")
        return said and f"{said}: mend what serves it, or leave the set out"

    def measure(self, criterion: Criterion, arm: str) -> Measured:
        """The criterion's harm on an arm, measured once for all tiers and margins."""
        key = (criterion.model_copy(update={"margin": 0.0}).model_dump_json(), arm)
        if key not in self._measured:
            self._measured[key] = measure(self.case, criterion, arm)
        return self._measured[key]

    def decide(self, criterion: Criterion, arm: str) -> CriterionResult:
        """The criterion's verdict on an arm."""
        floor = self.measure(criterion, FLOOR) if self.case.arms.has(FLOOR) else None
        return decide(criterion, self.measure(criterion, arm), floor, self.recipe.statistics, self.case.draws)


def _tables(rows: Iterable[Row], scores: Mapping[str, Mapping[str, TokenScores]]) -> Mapping[str, TokenTable]:
    baseline, asked = scores.get(BASELINE, {}), list(rows)
    made = {arm: table(asked, baseline, scores[arm]) for arm in scores if arm != BASELINE}
    return {arm: found for arm, found in made.items() if found is not None}


def _judge_tier(bench: Bench, name: str, tier: Tier) -> TierVerdict:
    names = [BASELINE, *bench.recipe.variants]
    judged = {variant: _judge_variant(bench, tier, variant) for variant in names}
    default = judged.get(tier.default)
    serve = _serve(tier, judged)
    verdict = Verdict.INCONCLUSIVE if default is None else default.verdict
    reason = f"the recipe has no variant {tier.default!r}" if default is None else default.reason
    return TierVerdict(
        tier=name,
        description=tier.description,
        default=tier.default,
        verdict=verdict,
        reason=reason,
        serve=serve,
        variants=tuple(judged.values()),
    )


def _serve(tier: Tier, judged: Mapping[str, VariantVerdict]) -> str | None:
    """The default where it passes, else the first allowed variant that does, else the fallback."""
    passing = [name for name, variant in judged.items() if variant.allowed and variant.verdict is Verdict.PASS]
    quantized = [name for name in passing if name != BASELINE]
    if tier.default in passing:
        return tier.default
    if quantized:
        return quantized[0]
    return tier.fallback if tier.fallback == BASELINE or tier.fallback in passing else None


def _judge_variant(bench: Bench, tier: Tier, variant: str) -> VariantVerdict:
    evidence = bench.evidence
    precision = evidence.precisions.get(variant, "unknown")
    is_role = variant == BASELINE and BASELINE in {tier.default, tier.fallback}
    allowed = variant in tier.allow or precision in tier.allow or is_role
    arm = FLOOR if variant == BASELINE else variant
    unfit = _unfit(bench, tier, variant)
    measured = tier.criteria if bench.case.arms.has(arm) else ()
    criteria = tuple(bench.decide(criterion, arm) for criterion in measured)
    if variant == BASELINE:  # it defines the floor of changed answers, and can only be too noisy for it
        criteria = tuple(
            each for each in criteria if each.metric != "output_disagreement" or each.verdict is Verdict.INVALID
        )
    if unfit is not None:
        verdict, reason = Verdict.INCONCLUSIVE, unfit
    elif variant == BASELINE:
        verdict, reason = _baseline(bench, criteria)
    else:
        verdict, reason = _combine(criteria)
        if verdict is Verdict.PASS and (said := garbage_of(bench.case.arms.of_variant(variant), variant)):
            verdict, reason = Verdict.INCONCLUSIVE, f"{said}, the baseline's are not, and no criterion here fails of it"
    if not allowed:
        only_baseline = set(tier.allow) == {BASELINE}
        unquantized = bench.evidence.precisions.get(BASELINE, "unquantized")
        only = f"must stay {unquantized}" if only_baseline else f"allows {', '.join(tier.allow)}"
        refusal = f"this interface {only}"
        reason = refusal if not criteria else f"{refusal}; {reason}"
    return VariantVerdict(
        variant=variant, precision=precision, allowed=allowed, verdict=verdict, reason=reason, criteria=criteria
    )


def _unfit(bench: Bench, tier: Tier, variant: str) -> str | None:
    """Why the run says nothing about a variant in this tier."""
    evidence = bench.evidence
    for name in dict.fromkeys((BASELINE, variant)):
        if name in evidence.invalid:
            first, *_ = evidence.invalid[name].splitlines() or [""]  # the findings hold the log's lines too
            return f"{name} could not be run: {first}"
        if not bench.case.arms.answered(name):
            return f"{name} gave no answers"
    if bench.recipe.noise_floor.replicates and not bench.case.arms.answered(FLOOR):
        return "the A/A arm gave no answers, so the baseline's own noise is unknown"
    if bench.garbage is not None:
        return bench.garbage
    if evidence.engine not in tier.engines:
        accepted = ", ".join(tier.engines)
        return f"the numbers come from the engine {evidence.engine or 'unknown'!r}; this interface accepts {accepted}"
    return None


def _baseline(bench: Bench, criteria: tuple[CriterionResult, ...]) -> tuple[Verdict, str]:
    """The baseline passes where it is sound against itself; nothing else is asked of it."""
    noisy = [result for result in criteria if result.verdict is Verdict.INVALID]
    if noisy:
        return Verdict.INCONCLUSIVE, noisy[0].reason
    if not bench.case.arms.has(FLOOR):
        return Verdict.PASS, "the baseline is what all else is measured by; its own noise was not measured"
    if not criteria:
        return Verdict.PASS, "the baseline is what all else is measured by, and nothing is asked of it here"
    num_within = sum(result.verdict is Verdict.PASS for result in criteria)
    if num_within < len(criteria):
        sure = f"run again, it is within {num_within} of {len(criteria)} margins for sure, and beyond none"
        return Verdict.PASS, f"the baseline is what all else is measured by; {sure}"
    return Verdict.PASS, "the baseline agrees with itself within every margin that it was run again for"


def _combine(criteria: tuple[CriterionResult, ...]) -> tuple[Verdict, str]:
    """FAIL where any criterion fails; PASS where some pass and the rest are void; else INCONCLUSIVE."""
    by_verdict = {verdict: [each for each in criteria if each.verdict is verdict] for verdict in Verdict}
    for verdict in (Verdict.FAIL, Verdict.INVALID, Verdict.INCONCLUSIVE):
        if by_verdict[verdict]:
            result = Verdict.FAIL if verdict is Verdict.FAIL else Verdict.INCONCLUSIVE
            return result, _first_reason(by_verdict[verdict])
    passed = by_verdict[Verdict.PASS]
    if not passed:
        void = by_verdict[Verdict.VOID]
        return Verdict.INCONCLUSIVE, void[0].reason if void else "no criterion was judged"
    nearest = max(passed, key=_share_of_margin)
    voids = f", {len(by_verdict[Verdict.VOID])} void" if by_verdict[Verdict.VOID] else ""
    if len(passed) == 1:
        return Verdict.PASS, f"its criterion passes{voids}: {nearest.reason}"
    return Verdict.PASS, f"all {len(passed)} criteria pass{voids}; nearest to its margin: {nearest.reason}"


def _first_reason(results: list[CriterionResult]) -> str:
    num_more = len(results) - 1
    more = f" (and {num_more} more {'criteria' if num_more > 1 else 'criterion'})" if num_more else ""
    return max(results, key=_share_of_margin).reason + more


def _share_of_margin(result: CriterionResult) -> float:
    value = result.estimate.value
    if value is None:
        return float("-inf")
    return value / result.margin if result.margin > 0 else value
