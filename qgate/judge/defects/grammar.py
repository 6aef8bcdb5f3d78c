"""Whether an answer has words but no grammar: an answer and the baseline's in, yes or no out. Pure."""

from __future__ import annotations

import re

from qgate.judge.defects.latin import READ_CHARS, WORD
from qgate.judge.defects.seen import Seen

PROSE_WORDS, GRAMMAR, NO_GRAMMAR = 35, 0.33, 0.12
"""Words that show whether there is grammar; share of small words in prose, and in what is none."""
_SMALL_WORDS = (
    "a an the and or but if of in on at to for from with by as is are was were be been being am has have had do does did"
    " will would can could should may might must i you he she it we they me him her us them my your his its our their"
    " this that these those there here what which who when where how why not no so than then too very just about into"
    " over after before up out more most some any all each other such only also"
)
_SMALL = frozenset(_SMALL_WORDS.split())
_LISTED = re.compile(r"[0-9,;:|{}()\[\]<>=_/\\#*\"]")


def falls_apart(seen: Seen) -> bool:
    """Whether the answer has words of English but none of its grammar, where the baseline's answer is English prose.

    Small words are 40 to 55 % of English prose. Lists, code and tables have few too, so these are left out.
    """
    if seen.reference is None or not seen.reference.text or not seen.text:
        return False
    words = WORD.findall(seen.text[:READ_CHARS].lower())
    if len(words) < PROSE_WORDS or _small_words(words) >= NO_GRAMMAR:
        return False
    lines = 1 + seen.text.strip().count("\n")
    listed = _LISTED.findall(seen.text[:READ_CHARS])
    if len(listed) > len(words) / 4 or len(words) < 4 * lines:
        return False
    theirs = WORD.findall(seen.reference.text[:READ_CHARS].lower())
    return len(theirs) >= PROSE_WORDS and _small_words(theirs) >= GRAMMAR


def _small_words(words: list[str]) -> float:
    return sum(word in _SMALL for word in words) / len(words)
