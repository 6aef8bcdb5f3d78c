"""token_salad: unrelated tokens of many scripts instead of sentences. A view in, a hit or None out. Pure."""

from __future__ import annotations

import re

from qgate.judge.defects import grammar
from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "token_salad"
SUMMARY = "unrelated tokens, often of several scripts, instead of sentences"
_LEAST_SYSTEMS = 3
_STORM = re.compile("(?:[\u2600-\u27bf\U0001f300-\U0001faff][\ufe0f\u200d\\s]*){60,}")
"""Emoji without a word between them."""


def is_salad(view: View) -> bool:
    """Whether three or more writing systems that nothing asks for take turns."""
    return len(view.foreign.systems) >= _LEAST_SYSTEMS


def detect(view: View) -> DefectHit | None:
    """From the first foreign token on; the whole text where it has words but no grammar and the baseline writes prose."""
    if is_salad(view):
        return DefectHit(NAME, view.foreign.stretches[0].start, "mixes " + ", ".join(sorted(view.foreign.systems)))
    if view.loop is None and grammar.falls_apart(view.seen):
        return DefectHit(NAME, 0, "words without grammar, where the baseline writes prose")
    storm = None if view.loop is not None or view.wishes.characters else _STORM.search(view.text)
    return None if storm is None else DefectHit(NAME, storm.start(), "emoji without words")
