"""How often something must repeat before it is a loop: a loop and how its answer ended in, yes or no out. Pure.

It depends on what repeats. Up to the token limit, a few sentences or a dozen syllables are enough; rules, leaders, hashes
and vectors of zeros are long by nature. Where the model stopped by itself, refrains, lists and tables are taken as meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from qgate.judge.defects import drift

_WORD = re.compile(r"[^\W\d_]+")
RULE = frozenset("-=_*#~+.·•:─━═│┃|<>/\\^ \t░▒▓█▁▂▃▄▅▆▇")
SHOUT = frozenset("!?！？")
_COPIES = ((2, 8), (20, 3.5), (40, 2.5))
"""Words in a copy, and how many copies are too many."""


@dataclass(frozen=True, slots=True)
class Loop:
    """text[start:stop] repeats `unit`."""

    start: int
    stop: int
    unit: str
    repeats: float
    exact: bool
    share: float
    """Of the whole answer."""
    in_sentence: bool = False
    """Whether it breaks off a line that begins with words."""

    @property
    def length(self) -> int:
        """Characters."""
        return self.stop - self.start

    @property
    def num_words(self) -> int:
        """Words in a copy; two letters of a script that writes no spaces are one."""
        words = _WORD.findall(self.unit)
        unspaced = sum(len(word) for word in words if not word.isascii())
        return max(len(words), unspaced // 2)


def up_to_the_limit(loop: Loop) -> bool:
    """Whether a loop that the token limit ended is one."""
    length, unit = loop.length, loop.unit
    if loop.num_words:
        return (loop.repeats >= 3.5 and length >= 100) or (loop.repeats >= 12 and length >= 30)
    if not unit.strip():
        return unit.count("\n") * loop.repeats >= 20 or length >= 150
    if any(char.isdigit() for char in unit):
        return length >= 120 or (length >= 66 and _is_one_digit(unit)) or (length >= 60 and loop.share >= 0.5)
    if set(unit) <= RULE:
        return length >= 200 or (length >= 120 and loop.share >= 0.9) or (length >= 100 and loop.in_sentence)
    if not unit.isascii() or unit.strip() in SHOUT:
        return loop.repeats >= 15 and length >= 30
    return length >= 120 or (length >= 30 and loop.share >= 0.5) or (length >= 40 and loop.in_sentence)


def by_itself(loop: Loop) -> bool:
    """Whether a loop that the model left, or may have left, by itself is one."""
    if loop.num_words >= 2:
        return loop.length >= 100 and (loop.repeats >= 20 or (_is_many(loop) and not drift.is_markup(loop.unit)))
    if loop.num_words == 1:
        return loop.repeats >= 20 and loop.length >= 60 and loop.share >= 0.5
    if any(char.isdigit() for char in loop.unit):
        return loop.share >= 0.98 and loop.repeats >= 40 and loop.start == 0
    if set(loop.unit) <= RULE:
        return loop.repeats >= 100 and loop.share >= 0.98
    return (loop.repeats >= 30 and loop.share >= 0.9) or (loop.repeats >= 60 and loop.unit.strip() in SHOUT)


def _is_many(loop: Loop) -> bool:
    """Whether prose comes more often than a refrain: the longer it is, the fewer copies are right."""
    if loop.share < 0.5:
        return loop.repeats >= 8 and loop.share >= 0.4
    return any(loop.num_words >= words and loop.repeats >= copies for words, copies in _COPIES)


def _is_one_digit(unit: str) -> bool:
    return len({char for char in unit if char.isdigit()}) == 1
