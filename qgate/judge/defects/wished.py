"""Whether a prompt asks for what an answer repeats: a loop and the wishes in, yes or no out. Pure."""

from __future__ import annotations

import re

from qgate.judge.defects.asked import Asked
from qgate.judge.defects.enough import RULE, Loop

_WORD = re.compile(r"[^\W\d_]+")
_MOST_UNIT, _LAYOUT_CHARS = 40, 400


def is_wished(loop: Loop, wishes: Asked, cut: bool) -> bool:
    """Whether it was asked for, or stands in the prompt itself."""
    unit = loop.unit.lower()
    if not wishes.text:
        return False
    if loop.exact and unit * 3 in wishes.text:
        return True
    words = _WORD.findall(unit)
    is_named = all(word in wishes.text for word in words) if words else unit.strip() in wishes.text
    if wishes.repetition and (is_named or (words and not cut)):
        return True
    return _is_of_asked_signs(loop, words, wishes, cut)


def _is_of_asked_signs(loop: Loop, words: list[str], wishes: Asked, cut: bool) -> bool:
    """Whether it is made of marks, characters or cells of a table that the prompt is about."""
    unit = loop.unit
    signs = set(unit) - {" ", "\n"} or set(unit)
    if signs <= set(wishes.marks):
        return True
    if signs == {"!"}:
        return False
    if not loop.exact:
        return (wishes.layout or wishes.characters) and any(char.isdigit() for char in unit)
    if len(words) > 1 or len(unit) > _MOST_UNIT or _is_plain_word(unit, words):
        return False
    if wishes.characters:
        return True
    is_cell = len(set(unit)) > 1 or signs <= RULE
    return wishes.layout and is_cell and not (cut and loop.length > _LAYOUT_CHARS)


def _is_plain_word(unit: str, words: list[str]) -> bool:
    """Whether a copy is one word between spaces: that is neither a cell nor a string of letters."""
    return bool(words) and len(words[0]) >= 3 and unit.strip() == words[0] and unit != words[0]
