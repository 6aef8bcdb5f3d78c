"""Text → how much of it is new rather than said again. Pure."""

from __future__ import annotations

from qgate.scorers.segment import words

_LOOP_UNITS = 24
_LOOP_SHARE = 0.25
_LOOP_SPAN = 4


def num_fresh(units: list[str], span: int) -> int:
    """Units that end a run of `span` not met before: all of a text without repetition, one period of a loop."""
    seen: set[tuple[str, ...]] = set()
    fresh = min(len(units), span - 1)
    for end in range(span, len(units) + 1):
        run = tuple(units[end - span : end])
        fresh += run not in seen
        seen.add(run)
    return fresh


def says_something(text: str) -> bool:
    """Whether there is a letter or digit, and the text is no loop.

    A loop: 24 words (characters of an unspaced script) or more, under a quarter of whose runs of four are new. Numbers
    are left out of this, so that a loop that counts on is seen too.
    """
    found = words(text)
    units = [word.casefold() for word in found if not word.isdecimal()]
    if len(units) < _LOOP_UNITS:
        return bool(found)
    return num_fresh(units, _LOOP_SPAN) >= _LOOP_SHARE * len(units)
