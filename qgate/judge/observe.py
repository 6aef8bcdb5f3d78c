"""One answer of an arm in, its row out: scored, searched for defects, compared with the reference. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from rapidfuzz.distance import Indel

from qgate.judge.defects import Seen, examine
from qgate.schemas.answers import Answer, Sampling
from qgate.schemas.evalset import Item
from qgate.schemas.evidence import DefectHit, Row

MAX_COMPARED = 20_000
"""Characters of each text that `similarity` looks at: its time is the product of both lengths."""
MAX_ERROR_CHARS = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer stands: its arm, and the request that it answers."""

    variant: str
    replicate: int
    evalset: str
    profile: str
    item: Item
    sampling: Sampling

    def columns(self) -> dict[str, Any]:
        """The fields of its row that say where it stands."""
        return {
            "variant": self.variant,
            "replicate": self.replicate,
            "evalset": self.evalset,
            "item": self.item.id,
            "profile": self.profile,
            "seed": self.sampling.seed,
            "temperature": self.sampling.temperature,
            "kind": self.item.kind,
            "language": self.item.language,
            "difficulty": self.item.difficulty,
            "slices": self.item.slices,
            "family": self.item.twin_of,
        }


@dataclass(frozen=True, slots=True)
class Beside:
    """What an answer is held against. None where there is nothing: for the baseline's own first answers."""

    baseline: Answer | None
    """The baseline's answer to the same request: what it also does is no fault of the variant."""
    reference: Answer | None
    """The answer that agreement is measured with: the baseline's, or the variant's own first for a replicate."""


def observe(
    place: Place, answer: Answer, beside: Beside, score: float | None, baseline_nll: float | None = None
) -> Row:
    """The row of `answer`; `score` is what its item's scorer gave, None where there was nothing to score."""
    hits, excused = _defects(place, answer, beside.baseline)
    agreement = _Agreement.of(answer, beside.reference)
    return Row(
        **place.columns(),
        status=answer.status,
        finish_reason=answer.finish_reason,
        score=score if came(answer) else None,
        defects=hits,
        text=answer.text,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        identical=agreement.identical,
        first_divergence=agreement.first_divergence,
        similarity=agreement.similarity,
        latency_s=answer.latency_s,
        baseline_nll=baseline_nll,
        excused=excused,
        error=None if came(answer) else _brief(answer.error),
    )


def _brief(error: str | None) -> str | None:
    """The first line of what was said, as long as a person reads it."""
    return next(iter((error or "").strip().splitlines()), "")[:MAX_ERROR_CHARS] or None


def came(answer: Answer | Row) -> bool:
    """Whether there is an answer at all: absence is never scored."""
    return answer.status in {"ok", "truncated"}


def seen(item: Item, answer: Answer, baseline: Answer | None) -> Seen:
    """What the defect detectors are shown of an answer."""
    found = shown(answer, "\n".join(message.content for message in item.messages), item.language)
    return replace(found, reference=None if baseline is None or not came(baseline) else seen(item, baseline, None))


def shown(answer: Answer, prompt: str, language: str) -> Seen:
    """The same for any prompt, beside no other answer."""
    return Seen(
        text=answer.text,
        prompt=prompt,
        finish_reason="length" if answer.status == "truncated" else answer.finish_reason,
        completion_tokens=answer.completion_tokens,
        logprobs=answer.logprobs,
        tool_calls=answer.tool_calls,
        language=language,
    )


def _defects(place: Place, answer: Answer, baseline: Answer | None) -> tuple[tuple[DefectHit, ...], tuple[str, ...]]:
    """The hits that nothing excuses, and the names of those that only the baseline's own answer excuses."""
    if not came(answer):
        return (), ()
    found = examine(seen(place.item, answer, baseline))
    return found.hits, found.excused


@dataclass(frozen=True, slots=True)
class _Agreement:
    identical: bool | None = None
    first_divergence: int | None = None
    similarity: float | None = None

    @classmethod
    def of(cls, answer: Answer, reference: Answer | None) -> _Agreement:
        if reference is None or not came(answer) or not came(reference):
            return cls()
        one: Sequence[object] = answer.text or ""
        other: Sequence[object] = reference.text or ""
        if answer.token_ids is not None and reference.token_ids is not None:
            one, other = answer.token_ids, reference.token_ids
        if one == other:
            return cls(identical=True, similarity=1.0)
        return cls(False, _first_difference(one, other), similarity(answer.text or "", reference.text or ""))


def _first_difference(one: Sequence[object], other: Sequence[object]) -> int:
    missing = object()
    pairs = zip_longest(one, other, fillvalue=missing)
    return next(index for index, (left, right) in enumerate(pairs) if left != right)


def similarity(one: str, other: str) -> float:
    """Normalised Indel similarity, 1 − distance / (len + len), of the first MAX_COMPARED characters."""
    return float(Indel.normalized_similarity(one[:MAX_COMPARED], other[:MAX_COMPARED]))
