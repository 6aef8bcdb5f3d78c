"""What `qgate repro` finds: tries, experiments, and the report that holds them. Data only, touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from qgate.schemas.answers import EngineFacts
from qgate.schemas.base import Frozen, Stored
from qgate.schemas.incident import Incident
from qgate.schemas.minimised import Body, Minimised


class Try(Frozen):
    """One answer to an incident's request, and whether the failure shows in it."""

    failed: bool = Field(description="Whether the failure is recognised in the answer")
    text: str | None = Field(description="The answer's text; null where none came")
    finish_reason: str | None = Field(default=None, description="stop, length, or the server's own word")
    defects: tuple[str, ...] = Field(default=(), description="Names of the defects found in the answer")
    seed: int = Field(description="Seed that was sent")
    came: bool = Field(
        default=True, description="False where no answer came (error, timeout): the try counts for nothing"
    )
    why: str = Field(default="", description="What the failure was recognised by, or why no answer came")
    prompt_token_ids_sha256: str | None = Field(default=None, description="Proof of which prompt was read")
    prompt_tokens: int | None = Field(default=None, ge=0)
    completion_tokens: int | None = Field(default=None, ge=0)


Tries = Callable[[Body, int], Sequence[bool]]
"""(body, number of tries) → whether each failed, asked of the candidate as it was filed: the first so many tries of this
body, each with a seed of its own. Those that were had before come from the store, only what is missing is asked, so that
(body, 8) after (body, 4) costs 4 calls and begins with the same 4. Tries that did not come are left out. Raises
EngineError."""

Arm = Literal["candidate", "baseline"]
Effect = Literal["kept", "less", "gone", "unclear"]
Cost = Literal["new request", "server restart"]
Cause = Literal[
    "weights", "kernel_or_engine", "sampling", "template_or_tokenizer", "eos_or_configuration",
    "nondeterminism_under_load", "baseline_too", "not_reproduced", "undetermined",
]  # fmt: skip
Suspect = Literal[
    "weights", "kernel_or_engine", "sampling", "template_or_tokenizer", "eos_or_configuration",
    "nondeterminism_under_load", "baseline_too",
]  # fmt: skip
State = Literal["shown", "excluded", "open"]
Confidence = Literal["high", "medium", "low"]


class Experiment(Frozen):
    """The incident's request, asked a number of times with one thing changed."""

    factor: str = Field(description="What was changed, in a word: `as_filed`, `greedy`, `template`, …")
    arm: Arm
    change: str = Field(description="What was changed, for a reader")
    cost: Cost
    separates: str = Field(default="", description="Which causes it tells apart")
    failures: int = Field(default=0, ge=0)
    tries: int = Field(default=0, ge=0, description="Tries that were answered")
    missing: int = Field(default=0, ge=0, description="Tries that no answer came to")
    of_failed: bool = Field(
        default=False, description="Only seeds that failed as filed were asked, so the rate is that of these"
    )
    effect: Effect | None = Field(default=None, description="Against the candidate as filed; null for itself")
    p_value: float | None = Field(default=None, description="One-sided Fisher exact test of a fall")
    low: float = Field(default=0.0, description="One-sided 95 % lower bound of the rate (Clopper-Pearson)")
    high: float = Field(default=1.0, description="One-sided 95 % upper bound of the rate")
    engine: str = ""
    dtype: str = Field(default="", description="Arithmetic of what served it; empty where it is not known")
    concurrency: int = Field(default=1, ge=1, description="Requests in flight")
    temperature: float | None = None
    prompt_sha256: tuple[str, ...] = Field(default=(), description="Distinct hashes of the prompt's token ids")
    prompt_tokens: int | None = None
    distinct_texts: int = Field(default=0, ge=0)
    nonfinite: int = Field(default=0, ge=0, description="Answers with a log-probability that is not finite")
    key: str = Field(default="", description="Content key of what served it, in the store")
    example: Try | None = Field(
        default=None, description="The first failed try, else the first with a defect, else the first"
    )
    refused: str | None = Field(default=None, description="Why it could not be run")

    @property
    def ran(self) -> bool:
        """Whether at least half of its tries were answered."""
        return self.refused is None and self.tries > 0 and self.tries >= self.missing


class Suspicion(Frozen):
    """What the experiments say of one cause."""

    cause: Suspect
    state: State
    because: str = Field(description="The experiment that shows or excludes it, with its figures")
    missing: str | None = Field(
        default=None,
        description="The experiment that would settle it, where it is open, or that would make it sure, where it is shown",
    )


class Attribution(Frozen):
    """The verdict of an incident."""

    cause: Cause
    confidence: Confidence | None = Field(description="high: every other cause is excluded; null: no cause is named")
    summary: str = Field(description="One sentence")
    suspicions: tuple[Suspicion, ...] = ()
    would_raise: tuple[str, ...] = Field(default=(), description="Experiments that would raise the confidence")
    alpha: float = Field(description="Error of one comparison")


class FileDifference(Frozen):
    """Something that the candidate's files and the baseline's say differently."""

    where: str = Field(description="File and field")
    of: Literal["template_or_tokenizer", "eos_or_configuration"]
    candidate: str
    baseline: str


class Repro(Stored):
    """repro.json: an incident, what was tried, and its cause."""

    KIND: ClassVar[str] = "repro"

    title: str
    incident: Incident = Field(description="As it was read, secrets removed")
    incident_sha256: str
    qgate_version: str
    started_at: str = Field(description="ISO 8601, UTC")
    finished_at: str
    attribution: Attribution
    recognised_by: str = Field(description="How a failure was told from a good answer")
    rate_to_detect: float = Field(description="The replay was long enough to see a failure of this rate with 95 %")
    excluded_rate: float | None = Field(description="Not reproduced: rates above this are excluded at 95 %")
    request: Body = Field(description="The request as both arms were asked it: every sampling value written down")
    experiments: tuple[Experiment, ...]
    differences: tuple[FileDifference, ...] = ()
    not_isolated: tuple[str, ...] = Field(default=(), description="What could not be isolated here, and why")
    checkpoints: dict[Arm, dict[str, str]] = Field(default_factory=dict, description="Name, precision and digest")
    facts: dict[Arm, EngineFacts] = Field(default_factory=dict, description="What served each arm as filed")
    host: dict[str, Any] = Field(default_factory=dict)
    minimised: Minimised | None = None
    minimal: tuple[Experiment, ...] = Field(default=(), description="The minimal request in both arms")
    notes: tuple[str, ...] = ()

    def find(self, factor: str, arm: Arm) -> Experiment | None:
        """The experiment of that factor and arm, where it was run."""
        return next((e for e in self.experiments if (e.factor, e.arm) == (factor, arm)), None)
