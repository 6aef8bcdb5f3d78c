"""Stutters: a text in which syllables are said again at once, in no fixed rhythm. Text in, the share of them out. Pure.

Of 9,000 natural texts in 60 languages and of many kinds of code none has 15 % of its characters in such doublings; a model
whose weights are broken has 20 to 70 %, while it is periodic nowhere.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

READ_CHARS = 4000
LEAST_CHARS, LEAST_SHARE, LEAST_PLACES, SURE_SHARE = 150, 0.15, 5, 0.4
LEAST_ALPHABET = 12
_DOUBLED = re.compile(r"([^\W\d_]{3,15}?)(?:[ \u00a0]?\1)+")


@dataclass(frozen=True, slots=True)
class Stutter:
    """Where it begins, what is doubled most, and how many copies of anything there are."""

    start: int
    unit: str
    copies: int


def find_stutter(text: str) -> Stutter | None:
    """The stutter that fills the end of `text` (its last 4,000 characters), or None."""
    offset = max(0, len(text) - READ_CHARS)
    read = text[offset:]
    if len(read) < LEAST_CHARS or len(set(read)) < LEAST_ALPHABET:
        return None  # too short to tell; DNA, binary digits: a small alphabet doubles by chance
    found = [match for match in _DOUBLED.finditer(read) if len(set(match.group(1))) > 1]
    doubled = sum(match.end() - match.start() for match in found)
    if doubled < (LEAST_SHARE if len(found) >= LEAST_PLACES else SURE_SHARE) * len(read):
        return None
    units = Counter(match.group(1) for match in found)
    copies = sum((match.end() - match.start()) // len(match.group(1)) for match in found)
    return Stutter(offset + found[0].start(), units.most_common(1)[0][0], copies)
