"""`token_f1` and `rouge`: how many of a reference's words an answer has, singly, in runs, or in order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from rapidfuzz.distance import LCSseq

from qgate.schemas.base import Frozen
from qgate.scorers.builtin import BuiltIn
from qgate.scorers.likeness import ReferenceArgs, first_text
from qgate.scorers.segment import words
from qgate.scorers.text import Phrase, normalise

_ARTICLES = frozenset({"a", "an", "the"})


class RougeArgs(Frozen):
    """Arguments of `rouge`."""

    values: tuple[Phrase, ...] = Field(min_length=1, description="Reference texts, any of which will do")
    kind: Literal["rouge1", "rouge2", "rougeL"] = Field(
        default="rougeL", description="Words, pairs of words, or the longest common subsequence"
    )


def _token_f1(text: str, args: ReferenceArgs, language: str) -> float:
    answer = _answer_words(text)
    return max(_shared_f1(answer, _answer_words(value)) for value in args.values)


def _answer_words(text: str) -> list[str]:
    return [word for word in words(normalise(text)) if word not in _ARTICLES]


def _rouge(text: str, args: RougeArgs, language: str) -> float:
    answer = words(normalise(text))
    return max(_rouge_of(answer, words(normalise(value)), args.kind) for value in args.values)


def _rouge_of(answer: Sequence[str], reference: Sequence[str], kind: str) -> float:
    if kind == "rougeL":
        return _f1(LCSseq.similarity(answer, reference), len(answer), len(reference))
    size = int(kind[-1])
    return _shared_f1(_runs(answer, size), _runs(reference, size))


def _runs(found: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(found[start : start + size]) for start in range(len(found) - size + 1)]


def _shared_f1(answer: Sequence[object], reference: Sequence[object]) -> float:
    return _f1(sum((Counter(answer) & Counter(reference)).values()), len(answer), len(reference))


def _f1(shared: float, num_answer: int, num_reference: int) -> float:
    """2PR / (P + R) with P = shared / answer and R = shared / reference, which is 2 · shared / (answer + reference)."""
    return 2 * shared / (num_answer + num_reference) if shared else 0.0


TOKEN_F1 = BuiltIn(
    "token_f1",
    "F1 over words as SQuAD scores answers (Rajpurkar 2016), the best of the references; zh, ja and th by character",
    ReferenceArgs,
    _token_f1,
    first_text,
)

ROUGE = BuiltIn(
    "rouge",
    "ROUGE's F1 (Lin 2004) without stemming, the best of the references; zh, ja and th by character",
    RougeArgs,
    _rouge,
    lambda args: args.values[0],
)
