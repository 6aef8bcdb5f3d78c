"""`contains_all` and `ordered`: phrases that an answer must hold, must not hold, and their order. Pure."""

from __future__ import annotations

from bisect import bisect_left

from pydantic import Field

from qgate.schemas.base import Frozen
from qgate.scorers.builtin import BuiltIn
from qgate.scorers.text import Phrase, Spellings, first, normalise, spellings


class ContainsArgs(Frozen):
    """Arguments of `contains_all`."""

    values: tuple[Spellings, ...] = Field(
        min_length=1, description="Phrases wanted; a list in it: any spelling will do"
    )
    none_of: tuple[Phrase, ...] = Field(default=(), description="Phrases any of which makes the score 0")
    normalize: bool = Field(default=True, description="Compare without regard to case, width, spaces and vowel marks")


def _contains(text: str, args: ContainsArgs, language: str) -> float:
    fold = args.normalize
    searched = normalise(text) if fold else text
    if any(first(searched, value, fold=fold) is not None for value in args.none_of):
        return 0.0
    return sum(first(searched, value, fold=fold) is not None for value in args.values) / len(args.values)


def _whole(args: ContainsArgs) -> str | None:
    """The one phrase that makes an answer right; several are its parts, and no answer as they stand."""
    return spellings(args.values[0])[0] if len(args.values) == 1 else None


class OrderedArgs(Frozen):
    """Arguments of `ordered`."""

    values: tuple[Spellings, ...] = Field(min_length=2, description="Phrases in the right order")


def _ordered(text: str, args: OrderedArgs, language: str) -> float:
    searched = normalise(text)
    starts = [at for value in args.values if (at := first(searched, value)) is not None]
    return longest_rising(starts) / len(args.values)


def longest_rising(numbers: list[int]) -> int:
    """Length of the longest strictly rising subsequence (patience sorting)."""
    tails: list[int] = []
    for number in numbers:
        at = bisect_left(tails, number)
        tails[at : at + 1] = [number]
    return len(tails)


CONTAINS_ALL = BuiltIn(
    "contains_all",
    "Share of `values` present; 0 where anything of `none_of` is",
    ContainsArgs,
    _contains,
    _whole,
)

ORDERED = BuiltIn(
    "ordered",
    "Share of `values` in the longest subsequence whose first mentions stand in the right order",
    OrderedArgs,
    _ordered,
)
