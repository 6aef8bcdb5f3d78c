"""language_switch: goes on, or answers, in a language that nobody asked for. A view in, a hit or None out. Pure."""

from __future__ import annotations

import re

from qgate.judge.defects import latin
from qgate.judge.defects.scripts import DENSE, Stretch
from qgate.judge.defects.token_salad import is_salad
from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "language_switch"
SUMMARY = "goes on or answers in a language that neither prompt nor baseline uses"
_HAN_CLAUSE = re.compile(r"[\u3400-\u9fff，、]{10,}")
_CHINESE = frozenset("您这们吗么谢请说对还时间书开门问题应该为从个给让话语读电脑办证样现实际认识")
"""Characters that Japanese does not write, or writes otherwise."""
_LEAST_CHINESE = 3
_DENSE_LETTERS, _WORDS, _LETTERS = 7, 3, 14


def switched(view: View) -> Stretch | None:
    """The first foreign stretch that is long enough to be a clause; for Japanese between Chinese, the kana together."""
    if view.foreign.unspoken and not view.foreign.breaks_in:
        return None
    for stretch in view.foreign.stretches:
        if _is_clause(stretch):
            return stretch
    kana = [stretch for stretch in view.foreign.stretches if stretch.script == "Kana"]
    return kana[0] if sum(stretch.num_letters for stretch in kana) >= _DENSE_LETTERS else None


def detect(view: View) -> DefectHit | None:
    """Where the other language begins."""
    if is_salad(view):
        return None
    stretch = switched(view)
    if stretch is not None:
        return DefectHit(NAME, stretch.start, f"{stretch.num_letters} letters of {stretch.script}")
    found = latin.find_switch(view.seen, view.wishes)
    if found is not None:
        start, expected, used = found
        return DefectHit(NAME, start, f"{used} instead of {expected}")
    english = latin.find_english(view.seen, view.wishes)
    if english is not None:
        return DefectHit(NAME, english, "goes on in English" if english else "answers in English")
    chinese = _chinese_in_japanese(view)
    return None if chinese is None else DefectHit(NAME, chinese, "Chinese instead of Japanese")


def _chinese_in_japanese(view: View) -> int | None:
    """Where the answer to a Japanese prompt has a clause in Han alone, with characters that only Chinese writes."""
    if view.wishes.weights.get("Kana", 0.0) < 1 or view.wishes.languages:
        return None
    clauses = (
        match for match in _HAN_CLAUSE.finditer(view.text) if len(set(match.group()) & _CHINESE) >= _LEAST_CHINESE
    )
    return next((match.start() for match in clauses), None)


def _is_clause(stretch: Stretch) -> bool:
    if stretch.script in DENSE:
        return stretch.num_letters >= _DENSE_LETTERS
    return stretch.num_letters >= _LETTERS and (stretch.num_words >= _WORDS or stretch.num_letters >= 2 * _LETTERS)
