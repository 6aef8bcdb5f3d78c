"""Where a text repeats itself exactly: text in, periodic runs out. Pure; linear in the text's length.

A run text[start:stop] has period p where every character equals the one p later. Searching is left to str.find and
slice comparison, which run in C.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ANCHOR = 16
MAX_INNER_PERIOD = 400
TRIES = 3


@dataclass(frozen=True, slots=True)
class Run:
    """text[start:stop] repeats with period `period` (characters)."""

    start: int
    stop: int
    period: int

    @property
    def length(self) -> int:
        """Characters in the run."""
        return self.stop - self.start

    @property
    def repeats(self) -> float:
        """Copies of the unit, the last one perhaps partial."""
        return self.length / self.period


def _common_prefix(text: str, first: int, second: int) -> int:
    """Length of the longest common prefix of text[first:] and text[second:], where first < second."""
    room = len(text) - second
    done, step = 0, 64
    while done < room:
        size = min(step, room - done)
        if text[first + done : first + done + size] == text[second + done : second + done + size]:
            done += size
            step *= 2
        elif size <= 8:
            while text[first + done] == text[second + done]:
                done += 1
            return done
        else:
            step = size // 2
    return done


def final_run(text: str) -> Run | None:
    """The longest run of at least two copies that reaches the end of `text`, or None.

    The last 1, 2, 4, … characters are looked for further left; where they are as long as the unit, the nearest place is
    one period away (Fine and Wilf, 1965).
    """
    backwards = text[::-1]
    best: Run | None = None
    size, num = 1, len(text)
    while size <= num // 2:
        period = backwards.find(backwards[:size], 1)
        if period < 0:
            break
        length = period + _common_prefix(backwards, 0, period)
        if length >= 2 * period and (best is None or length > best.length):
            best = Run(num - length, num, period)
        size *= 2
    return best


def inner_runs(text: str, min_length: int) -> Iterator[Run]:
    """Runs of at least `min_length` characters and three copies, anywhere in `text`, in order; periods to 400.

    A run that long covers a sampled place early on, and what stands there comes again one period later.
    """
    place, edge, step = 0, 0, max(ANCHOR, min_length // 3)
    while place + 2 * ANCHOR <= len(text):
        run = _run_at(text, place, edge)
        if run is not None and run.length >= max(min_length, 3 * run.period):
            yield run
            edge = place = run.stop
        else:
            place += step


def _run_at(text: str, place: int, edge: int) -> Run | None:
    anchor = text[place : place + ANCHOR]
    found = place
    best: Run | None = None
    for _ in range(TRIES):
        found = text.find(anchor, found + 1, place + MAX_INNER_PERIOD + ANCHOR)
        if found < 0:
            break
        period = found - place
        stop = found + _common_prefix(text, place, found)
        start = place
        while start > edge and text[start - 1] == text[start - 1 + period]:
            start -= 1
        if stop - start >= 3 * period and (best is None or stop - start > best.length):
            best = Run(start, stop, period)
    return best
