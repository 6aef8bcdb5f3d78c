"""Whether an answer is caught in a loop: text, ending and wishes in, the loop out. Pure; linear in the text's length.

Four kinds are looked for, from certain to fuzzy: an exact loop at the end, a long exact loop anywhere, a loop in which a
counter runs or a word changes, and a stutter without rhythm. How much must repeat before it is a loop depends on what
repeats and on the ending: where the model stopped by itself, refrains, lists, tables, logs and rules are taken as meant.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from qgate.judge.defects import drift, periods
from qgate.judge.defects.asked import Asked
from qgate.judge.defects.periods import Run
from qgate.judge.defects.seen import Seen
from qgate.judge.defects.stutter import find_stutter

_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"[0-9]+")
_SENTENCE_BREAK = re.compile(r"(?:[.!?。！？;；]|\n)\s*(?=\w)")
_SPACE_BREAK = re.compile(r"\s+(?=\S)")
_RULE = frozenset("-=_*#~+.·•:─━═│┃|<>/\\^ \t░▒▓█▁▂▃▄▅▆▇")
_INNER_CHARS = 160


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


@dataclass(frozen=True, slots=True)
class _Unit:
    """What repeats, as far as it matters for how often it may."""

    text: str
    num_words: int

    @classmethod
    def of(cls, text: str) -> _Unit:
        words = _WORD.findall(text)
        unspaced = sum(len(word) for word in words if not word.isascii())
        return cls(text, max(len(words), unspaced // 2))


def find_loop(seen: Seen, wishes: Asked) -> Loop | None:
    """The loop that the answer is caught in, or None where there is none or where the prompt asks for it."""
    text = seen.text or ""
    body = text.rstrip("\ufffd") if seen.cut else text
    loop = _final(body, seen.cut) or _inner(body)
    if loop is None and not seen.stopped:
        loop = _counting(body, seen.cut) or _stuttering(body) or (_drifting(body) if seen.cut else None)
    return None if loop is None or _wished(loop, wishes, seen.cut) else loop


def _loop(text: str, run: Run, exact: bool = True) -> Loop:
    start = run.start + _first_break(text[run.start : run.start + run.period])
    unit = text[start : start + run.period]
    return Loop(start, run.stop, unit, (run.stop - start) / run.period, exact, (run.stop - start) / len(text))


def _first_break(unit: str) -> int:
    """Where in one period a reader would say that the copy begins: after a sentence or line, else after a space."""
    match = _SENTENCE_BREAK.search(unit) or _SPACE_BREAK.search(unit)
    return 0 if match is None else match.end() % len(unit)


def _final(text: str, cut: bool) -> Loop | None:
    run = periods.final_run(text)
    if run is None or run.length < 20 or run.repeats < 3:
        return None
    loop = _loop(text, run)
    enough = _enough_when_cut(loop) if cut else _enough_when_stopped(loop)
    return loop if enough else None


def _inner(text: str) -> Loop | None:
    for run in periods.inner_runs(text, _INNER_CHARS):
        loop = _loop(text, run)
        if _enough_when_stopped(loop):
            return loop
    return None


def _enough_when_cut(loop: Loop) -> bool:
    """Whether a loop up to the token limit is one: a few long sentences, a dozen syllables, or many symbols."""
    length, unit = loop.stop - loop.start, _Unit.of(loop.unit)
    if unit.num_words:
        return (loop.repeats >= 3.5 and length >= 100) or (loop.repeats >= 12 and length >= 30)
    if not loop.unit.strip():
        return loop.unit.count("\n") * loop.repeats >= 20 or length >= 150
    if set(loop.unit) <= _RULE:
        return length >= 200 or (length >= 120 and loop.share >= 0.9)
    if not loop.unit.isascii() or loop.unit.strip() in {"!", "?"}:
        return loop.repeats >= 15 and length >= 30
    return length >= 120 or (length >= 30 and loop.share >= 0.5 and not any(char.isdigit() for char in loop.unit))


def _enough_when_stopped(loop: Loop) -> bool:
    """Whether a loop that the model left by itself is one: more than a refrain, a laugh, a rule or a row of zeros."""
    length, unit = loop.stop - loop.start, _Unit.of(loop.unit)
    if unit.num_words >= 2:
        return length >= 100 and (loop.repeats >= 20 or (loop.repeats >= 8 and loop.share >= 0.4))
    if unit.num_words == 1:
        return loop.repeats >= 20 and length >= 60 and loop.share >= 0.5
    if set(loop.unit) <= _RULE or any(char.isdigit() for char in loop.unit):
        return loop.repeats >= 100 and loop.share >= 0.98
    return loop.repeats >= 30 and loop.share >= 0.9


def _counting(text: str, cut: bool) -> Loop | None:
    """A loop in which only a number changes: "Step 41: check the valve. Step 42: check the valve." to the end."""
    flat = _DIGITS.sub("0", text)
    if len(flat) == len(text) and flat == text:
        return None
    run = periods.final_run(flat)
    if run is None or _Unit.of(flat[run.start : run.stop][: run.period]).num_words < 2:
        return None
    if run.repeats < (6 if cut else 30) or run.length < 150 or run.stop < len(flat):
        return None
    loop = _loop(flat, run, exact=False)
    start = _unflatten(text, run.start)
    if not _is_count([int(digits) for digits in _DIGITS.findall(text[start:])], loop.unit.count("0")):
        return None
    return Loop(start, len(text), text[start : start + run.period], loop.repeats, False, loop.share)


def _is_count(numbers: list[int], num_fields: int) -> bool:
    """Whether each of the `num_fields` numbers of a copy stays or changes by the same step: a count, and no data."""
    for field in range(num_fields):
        column = numbers[field::num_fields]
        steps = Counter(after - before for before, after in pairwise(column))
        if not steps or steps.most_common(1)[0][1] < 0.7 * (len(column) - 1):
            return False
    return num_fields > 0


def _unflatten(text: str, place: int) -> int:
    """Where in `text` the character is that stands at `place` once each number is one digit."""
    shift = 0
    for match in _DIGITS.finditer(text):
        if match.start() - shift >= place:
            break
        shift += match.end() - match.start() - 1
    return min(place + shift, len(text) - 1)


def _drifting(text: str) -> Loop | None:
    found = drift.find_drift(text)
    if found is None:
        return None
    start, period = found
    length = len(text) - start
    return Loop(start, len(text), text[start : start + period], length / period, False, length / len(text))


def _stuttering(text: str) -> Loop | None:
    found = find_stutter(text)
    if found is None:
        return None
    return Loop(found.start, len(text), found.unit, found.copies, False, (len(text) - found.start) / len(text))


def _wished(loop: Loop, wishes: Asked, cut: bool) -> bool:
    """Whether the prompt asks for this repetition, or repeats the same thing itself."""
    if not wishes.text:
        return False
    unit = loop.unit.lower()
    if loop.exact and unit * 3 in wishes.text:
        return True
    words = _WORD.findall(unit)
    if wishes.symbols and len(words) <= 1 and len(unit) <= 40:
        return True
    if wishes.symbols and not loop.exact:
        return True
    return wishes.repetition and (not cut or all(word in wishes.text for word in words))
