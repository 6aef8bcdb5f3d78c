"""Loops that drift: the end of a text says nothing new although no two copies are equal. Pure; bounded work.

Prose brings a new word every few words; a list or a table one in every row. In 3,000 natural texts of many languages the last
80 words held at least three that the 160 before did not, and the last 120 were of 28 kinds or more. In a drifting loop a
handful of words takes turns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qgate.judge.defects import pieces
from qgate.judge.defects.pieces import Pieces

_MARK = re.compile(r"[<>{}\[\]=/|_\\:#$&*+]")
_NUMBER = re.compile(r"\s*[0-9]+[.):、]")
MOST_MARKS, LEAST_WORDS = 0.06, 0.6


@dataclass(frozen=True, slots=True)
class _Measure:
    """How much of the end is compared with what stands before, and what still counts as nothing new."""

    late: int
    before: int
    least_before: int
    most_new: int
    most_kinds: float
    """Different ones of all that are read."""


_WORDS = (_Measure(80, 160, 80, 2, 0.27), _Measure(60, 60, 60, 1, 0.20))
_LETTERS = (_Measure(160, 320, 80, 12, 0.50),)
"""Of threes of letters, in scripts without spaces."""


def find_drift(text: str, found: Pieces) -> int | None:
    """The piece of `found` (those of `text`) from which on nothing new is said, or None."""
    said: Sequence[str] = found.said
    measures: tuple[_Measure, ...] = _WORDS
    if pieces.is_unspaced(found.said[-160:]):
        measures, said = _LETTERS, ["".join(said[place : place + 3]) for place in range(len(said) - 2)]
    kinds = next((kinds for measure in measures if (kinds := _few_kinds(said, measure))), None)
    if kinds is None:
        return None
    first = _first(said, kinds)
    end = Pieces(found.said[first:], found.places[first:])
    rest = text[end.places[0] :]
    if end.num_words < LEAST_WORDS * len(end) or is_markup(rest) or _is_plan(rest):
        return None
    return first


def _is_plan(text: str) -> bool:
    """Whether it is a numbered list of few words, of which most lines are new all the same."""
    lines = text.splitlines()
    numbered = [line[match.end() :] for line in lines if (match := _NUMBER.match(line))]
    return 2 * len(numbered) > len(lines) > 1 and 2 * len(set(numbered)) > len(numbered)


def _few_kinds(said: Sequence[str], measure: _Measure) -> set[str] | None:
    """The handful of words that the end is made of, or None where it says something new."""
    read = said[-measure.late - measure.before :]
    late, before = set(read[-measure.late :]), set(read[: -measure.late])
    if len(read) < measure.late + measure.least_before or len(late - before) > measure.most_new:
        return None
    kinds = late | before
    return kinds if len(kinds) <= measure.most_kinds * min(len(read), 1.5 * measure.late) else None


def is_markup(text: str) -> bool:
    """Whether it is code, markup, paths or a table rather than sentences: there rows are alike and yet say something."""
    return len(_MARK.findall(text)) > MOST_MARKS * len(text)


def _first(said: Sequence[str], kinds: set[str]) -> int:
    """Where the end that is made of these kinds alone begins."""
    place = len(said)
    while place and said[place - 1] in kinds:
        place -= 1
    return place
