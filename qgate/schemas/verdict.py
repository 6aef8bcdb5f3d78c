"""The outcome: estimates per criterion, a verdict per variant and tier. Data only, touches nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field

from qgate.errors import ExitCode
from qgate.schemas.base import Frozen, Stored


class Verdict(StrEnum):
    """PASS needs evidence that the harm is within the margin, FAIL that it is beyond; all else is INCONCLUSIVE."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    VOID = "VOID"  # a criterion that cannot speak: the baseline itself is on the floor
    INVALID = "INVALID"  # the A/A arm fails the criterion: the engine is too noisy for this margin


class Estimate(Frozen):
    """A harm with its one-sided confidence bounds (each at 1 − alpha), unrounded."""

    value: float | None = Field(description="Point estimate; None where nothing could be estimated")
    low: float | None = Field(description="Lower bound: FAIL when it is above the margin")
    high: float | None = Field(description="Upper bound: PASS when it is at or below the margin")
    standard_error: float | None = Field(default=None, description="Of the value, items being independent")
    num_items: int = Field(ge=0, description="Clusters: distinct items")
    num_pairs: int = Field(ge=0, description="Pairs: items × profiles × seeds, or token positions for token metrics")
    method: str = Field(description="Name of the interval, e.g. `Newcombe 10`, `cluster bootstrap-t`")


class CriterionResult(Frozen):
    """One criterion of a tier for one variant."""

    metric: str
    scope: str = Field(description="Readable: `instruction · warm · language=zh`, or `all sets`")
    margin: float
    estimate: Estimate
    floor: Estimate | None = Field(default=None, description="The same harm of the baseline against itself (A/A)")
    baseline_value: float | None = Field(default=None, description="Baseline's own level, e.g. its mean score")
    variant_value: float | None = None
    verdict: Verdict
    reason: str = Field(description="One line for a person")
    further_items: int | None = Field(default=None, description="Further items that would settle an INCONCLUSIVE")
    flags: tuple[str, ...] = Field(default=(), description="e.g. `implausible gain`")
    details: dict[str, Any] = Field(
        default_factory=dict,
        description="What the metric adds: exact McNemar and flips both ways, or the estimate of each slice",
    )


class VariantVerdict(Frozen):
    """One variant in one tier."""

    variant: str
    precision: str
    allowed: bool
    verdict: Verdict
    reason: str
    criteria: tuple[CriterionResult, ...] = ()


class TierVerdict(Frozen):
    """One serving interface: what it may serve."""

    tier: str
    description: str = ""
    default: str
    verdict: Verdict = Field(description="Of the default variant")
    reason: str
    serve: str | None = Field(
        description="What it may serve now: the default, a passing alternative, the fallback, or nothing"
    )
    variants: tuple[VariantVerdict, ...]


class Breakdown(Frozen):
    """A metric of one variant along one axis: output position, prompt length, temperature, noise, language, kind."""

    variant: str
    metric: str
    axis: str
    labels: tuple[str, ...]
    baseline: tuple[float | None, ...]
    variant_values: tuple[float | None, ...]
    floor: tuple[float | None, ...] = ()
    num: tuple[int, ...]
    first_departure: str | None = Field(default=None, description="First label at which the variant leaves the floor")


class Example(Frozen):
    """One of the worst answers, with the baseline's beside it."""

    id: str
    evalset: str
    variant: str
    prompt_tail: str
    baseline_text: str | None
    variant_text: str | None
    baseline_score: float | None
    variant_score: float | None
    defects: tuple[str, ...]
    where: str = Field(default="", description="Where the worst defect begins, e.g. `char 312: repetition_loop`")


class VerdictSheet(Stored):
    """Everything that was decided, from one run."""

    KIND: ClassVar[str] = "verdict"

    run_id: str
    recipe: str
    engine: str
    tiers: tuple[TierVerdict, ...]
    findings: tuple[str, ...] = Field(default=(), description="What must be known beside the verdicts")
    breakdowns: tuple[Breakdown, ...] = ()
    examples: tuple[Example, ...] = ()
    summary: dict[str, Any] = Field(
        default_factory=dict, description="Per variant: mean scores, defect rates, bits, speed"
    )

    @property
    def exit_code(self) -> ExitCode:
        """0 every tier's default variant passes, 1 a tier fails, 3 otherwise."""
        verdicts = {tier.verdict for tier in self.tiers}
        if Verdict.FAIL in verdicts:
            return ExitCode.FAIL
        return ExitCode.PASS if verdicts == {Verdict.PASS} else ExitCode.INCONCLUSIVE
