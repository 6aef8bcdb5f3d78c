"""What the judge reads: one row per answer, and token scores per arm. Data only, touches nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from qgate.schemas.answers import TokenScores


@dataclass(frozen=True, slots=True)
class DefectHit:
    """A defect found in one answer. `start` is a character offset into the text (0 where it concerns the whole)."""

    name: str
    start: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One answer of one arm, observed: scored, searched for defects, compared with the baseline's to the same request.

    An arm is (variant, replicate): the baseline's replicate 0 is the reference, its replicates ≥ 1 are the A/A arm, a
    variant's replicate ≥ 1 is the variant against itself (there `identical` and the like are against its replicate 0).
    Rows pair by (evalset, item, profile, seed); items are the clusters.
    """

    variant: str
    replicate: int
    evalset: str
    item: str
    profile: str
    seed: int
    temperature: float
    kind: str
    language: str
    difficulty: int
    slices: Mapping[str, str]
    status: str
    finish_reason: str | None
    score: float | None
    """In [0, 1]; None where the answer did not come (status error or timeout), which is never a pass."""
    defects: tuple[DefectHit, ...]
    """Defects that neither the prompt nor the baseline's own answer excuses; for the baseline, its own."""
    text: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    identical: bool | None
    """Same token ids (same text where no ids came) as the reference answer; None for the reference itself."""
    first_divergence: int | None
    """Index of the first token (character where no ids came) that differs; None where identical or reference."""
    similarity: float | None
    """Normalised Indel similarity of the texts in [0, 1]."""
    latency_s: float
    baseline_nll: float | None = None
    """Mean negative log-likelihood per token of this answer under the baseline, in nats; None where not scored."""
    excused: tuple[str, ...] | None = None
    """Names of the defects that this answer has and that only the baseline's own answer excuses (not the prompt); None
    where that was not looked for."""
    family: str | None = None
    """Id of the clean item that this item is a noised twin of; a clean item and its twins count as one item."""
    written: bool = True
    """Whether the model wrote the text. Where it only ranked given options, `text` is the one it ranks first, and
    nothing can be said of its length, its limit or its defects."""
    error: str | None = None
    """What went wrong where no answer came, in one line; None also where nobody said."""

    @property
    def ending(self) -> str:
        """Its status, with what went wrong."""
        return self.status if self.error is None else f"{self.status}: {self.error}"

    @property
    def cluster(self) -> tuple[str, str]:
        """What is independent of all else: an item, together with its twins, profiles and seeds."""
        return (self.evalset, self.family or self.item)

    @property
    def pair(self) -> tuple[str, str, str, int]:
        """What makes two rows a pair."""
        return (self.evalset, self.item, self.profile, self.seed)

    @property
    def request_id(self) -> str:
        """The id of what it answers, under which the answer is scored too."""
        return "/".join(map(str, self.pair))


@dataclass(frozen=True)
class Evidence:
    """All that a verdict rests on.

    `token_scores[arm][id]`: the baseline's answer `id` teacher-forced through an arm, arms being `baseline`,
    `baseline#1` (the A/A replicate) and the variants' names.
    """

    rows: tuple[Row, ...]
    token_scores: Mapping[str, Mapping[str, TokenScores]] = field(default_factory=dict)
    reference_scores: Mapping[str, Mapping[str, TokenScores]] = field(default_factory=dict)
    """The same of right answers; ids are `evalset/item/references/0`."""
    precisions: Mapping[str, str] = field(default_factory=dict)
    """Variant name to precision, `baseline` included."""
    engine: str = ""
    invalid: Mapping[str, str] = field(default_factory=dict)
    """Variant name to why it could not be run at all (quantizer failed, server died): INCONCLUSIVE, never PASS."""
    prompts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(evalset, item) to the prompt's text, for the examples in reports."""
