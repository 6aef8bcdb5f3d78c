"""Loops that drift: the end of a text brings nothing new although no two copies are equal. Pure; bounded work.

Natural text brings a new word every few words, tables and code one in every row. In a drifting loop each sentence is a
near copy of one shortly before. A cheap compression ratio of the end says whether it is worth looking.
"""

from __future__ import annotations

import re
import zlib

TAIL_CHARS = 1600
NUM_BEFORE = 6
LEAST_SEGMENTS, LEAST_CHARS = 7, 240
LOOK_AT_RATIO = 0.30
NEAR = 0.72
STRANGERS = 6
MOST_MARKS = 0.06

_SEGMENT = re.compile(r"[^.!?。！？؟।\n;；]*[.!?。！？؟।\n;；]+\s*|[^.!?。！？؟।\n;；]+$")
_MARK = re.compile(r"[<>{}()\[\]=/|_\"\\;:#$&*+]")
_TOKEN = re.compile(r"[A-Za-z]+|[0-9]+|[^\W\d_a-zA-Z]")


def find_drift(text: str) -> tuple[int, int] | None:
    """(start, characters in the first copy) of a drifting loop that reaches the end of `text`, or None."""
    tail = text[-TAIL_CHARS:]
    data = tail[-800:].encode("utf-8", "replace")
    if len(tail) < LEAST_CHARS or len(zlib.compress(data, 1)) > LOOK_AT_RATIO * len(data) + 12:
        return None
    segments = [match.span() for match in _SEGMENT.finditer(tail)]
    bags = [frozenset(_normal(token) for token in _TOKEN.findall(tail[start:stop])) for start, stop in segments]
    if len(bags) > 1 and segments[-1][1] - segments[-1][0] < segments[-2][1] - segments[-2][0]:
        segments, bags = segments[:-1], bags[:-1]  # the last one is cut short
    first, period = _first_of_loop(bags)
    if len(bags) - first < LEAST_SEGMENTS:
        return None
    start = segments[first][0]
    if len(tail) - start < LEAST_CHARS or not _closed(bags[first:]) or _is_markup(tail[start:]):
        return None
    stop = segments[min(first + period, len(segments)) - 1][1]
    return len(text) - len(tail) + start, max(1, stop - start)


def _is_markup(text: str) -> bool:
    """Whether it is code, markup, paths or a table rather than sentences: there rows are alike and yet say something."""
    return len(_MARK.findall(text)) > MOST_MARKS * len(text)


def _normal(token: str) -> str:
    return "0" if token[0].isdigit() else token.lower()


def _first_of_loop(bags: list[frozenset[str]]) -> tuple[int, int]:
    """Index of the first segment of the loop at the end, and how many segments make one copy.

    One segment in `STRANGERS` may be new: a loop stumbles now and then, and goes on.
    """
    first, period, strangers = len(bags), 1, 0
    for index in range(len(bags) - 1, 0, -1):
        back = _nearest(bags, index)
        if back:
            first, period = index - back, back
        else:
            strangers += 1
        if strangers * STRANGERS > len(bags) - index + STRANGERS:
            break
    return first, period


def _nearest(bags: list[frozenset[str]], index: int) -> int:
    """How many segments before `index` its near copy is, or 0 where it has none."""
    bag = bags[index]
    for back in range(1, min(NUM_BEFORE, index) + 1):
        other = bags[index - back]
        if bag == other or len(bag & other) >= NEAR * max(len(bag | other), 1):
            return back
    return 0


def _closed(bags: list[frozenset[str]]) -> bool:
    """Whether the loop's later copies bring fewer than one new word for every two segments, and hold words at all."""
    half = len(bags) // 2
    early = frozenset().union(*bags[:half])
    late = frozenset().union(*bags[half:])
    sizes = sum(len(bag) for bag in bags) / len(bags)
    return sizes >= 3 and len(late - early) <= (len(bags) - half) / 2
