"""Loops whose copies differ a little: a passage, a paragraph or a page that comes again and again. Pure.

In a loop each word is the one that stood a fixed number of words before, but for a counter or a name that changes, and the
copies bring no new words. Rows of a table or a list of like sentences are alike too, but each brings a word of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from qgate.judge.defects.pieces import Pieces

GRAM, READ_LAST, LEAST_VOTES = 4, 60, 20
"""Where the last 60 groups of four words stood before votes on the period; a third must agree."""
WINDOW, MOST_OTHER = 40, 0.2
"""So many words in a row may hold this share of others than one period before,"""
MOST_OTHER_IN_ALL, WORDS_PER_NEW = 0.12, 60
"""the whole loop this share, and one new word for so many."""
LEAST_UNIT, LEAST_SHARE = 4, 0.6
"""Words in a unit, and their share of its pieces, the others being numbers: fewer are data."""
FEW_COPIES, LEAST_COPIES, LEAST_WORDS = 2.0, 5.0, 60
LONG_UNIT = 40


def find_copies(pieces: Pieces) -> tuple[int, int] | None:
    """(first piece of the loop, pieces in a copy) of a loop that reaches the end of `pieces`, or None."""
    said = pieces.said
    period = _period(said)
    if period is None:
        return None
    first = _first(said, period)
    length = len(said) - first
    unit, run = Pieces(said[first : first + period], ()), Pieces(said[first:], ())
    if unit.num_words < LEAST_UNIT or unit.num_words < LEAST_SHARE * len(unit) or run.num_words < LEAST_WORDS:
        return None
    if length < (FEW_COPIES if unit.num_words >= LONG_UNIT else LEAST_COPIES) * period:
        return None
    other = sum(said[place] != said[place - period] for place in range(first + period, len(said)))
    new = len(set(run.said[period:]) - set(unit.said))
    if other > MOST_OTHER_IN_ALL * (length - period) or new > 1 + length / WORDS_PER_NEW:
        return None
    return first, period


def _period(said: Sequence[str]) -> int | None:
    """How far back most of the last groups of words stood before."""
    latest: dict[tuple[str, ...], int] = {}
    votes: Counter[int] = Counter()
    for place in range(len(said) - GRAM + 1):
        gram = tuple(said[place : place + GRAM])
        if place >= len(said) - READ_LAST and gram in latest:
            votes[place - latest[gram]] += 1
        latest[gram] = place
    if not votes:
        return None
    period, num = votes.most_common(1)[0]
    return period if num >= LEAST_VOTES else None


def _first(said: Sequence[str], period: int) -> int:
    """Where the loop begins: from there on nearly every word is the one a period before."""
    first, others = len(said), [0] * WINDOW
    for place in range(len(said) - 1, period - 1, -1):
        is_other = said[place] != said[place - period]
        others[place % WINDOW] = is_other
        if sum(others) > MOST_OTHER * WINDOW:
            break
        if not is_other:
            first = place
    return first - period
