"""Whether an answer is caught in a loop: text, ending and wishes in, the loop out. Pure; linear in the text's length.

Looked for from certain to fuzzy: an exact loop at the end, a long exact loop anywhere, and, unless the model stopped by
itself, a loop in which a number, the spaces, the marks or a word changes, a stutter, and an end that says nothing new.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from qgate.judge.defects import copies, drift, enough, folds, periods, pieces
from qgate.judge.defects.asked import Asked
from qgate.judge.defects.enough import Loop
from qgate.judge.defects.monotone import find_monotone
from qgate.judge.defects.periods import Run
from qgate.judge.defects.seen import Seen
from qgate.judge.defects.stutter import find_stutter
from qgate.judge.defects.wished import is_wished

_SENTENCE_BREAK = re.compile(r"(?:[.!?。！？;；]|\n)\s*(?=\w)")
_SPACE_BREAK = re.compile(r"\s+(?=\S)")
_WORD = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"[0-9]+")
_EMPTY_ITEM = re.compile(r"\s*0[.):、]\s*")
_EMPTY_ITEMS = 20
_INNER_CHARS = 160
_READ_CHARS = 16_000
_LOOK_AT_RATIO, _RATIO_CHARS = 0.40, 800
_ANCHORS, _ANCHOR = (24, 90, 200), 16


def find_loop(seen: Seen, wishes: Asked) -> Loop | None:
    """The loop that the answer is caught in, or None where there is none or where the prompt asks for it."""
    text = seen.text or ""
    body = text.rstrip("\ufffd") if seen.cut else text
    loop = _final(body, seen) or _inner(body)
    if loop is None and not seen.stopped:
        loop = next(_changing(body, seen.cut), None)
    return None if loop is None or is_wished(loop, wishes, seen.cut) else loop


def _loop(text: str, run: Run, exact: bool = True) -> Loop:
    start = run.start + _first_break(text[run.start : run.start + run.period])
    unit = text[start : start + run.period]
    line = text[:start].rpartition("\n")[2]
    share = (run.stop - start) / len(text)
    in_sentence = len(_WORD.findall(line)) > 1
    return Loop(start, run.stop, unit, (run.stop - start) / run.period, exact, share, in_sentence)


def _first_break(unit: str) -> int:
    """Where in one period a reader would say that the copy begins: after a sentence or line, else after a space."""
    match = _SENTENCE_BREAK.search(unit) or _SPACE_BREAK.search(unit)
    return 0 if match is None else match.end() % len(unit)


def _final(text: str, seen: Seen) -> Loop | None:
    run = periods.final_run(text)
    if run is None or run.length < 20 or run.repeats < 3:
        return None
    loop = _loop(text, run)
    if seen.stopped or not enough.up_to_the_limit(loop):
        return loop if not seen.cut and enough.by_itself(loop) else None
    is_sure = seen.cut or enough.by_itself(loop) or (loop.repeats >= 8 and loop.length >= 200)
    return loop if is_sure else None


def _inner(text: str) -> Loop | None:
    for run in periods.inner_runs(text, _INNER_CHARS):
        loop = _loop(text, run)
        if enough.by_itself(loop):
            return loop
    return None


def _changing(text: str, cut: bool) -> Iterator[Loop]:
    """Loops whose copies differ, the surest first."""
    yield from filter(None, (_counting(text, cut), _stuttering(text)))
    if not cut:
        return
    yield from filter(None, (_folded(text, folds.SPACES), _folded(text, folds.MARKS), _monotone(text)))
    if _may_repeat(text):
        yield from _in_words(text)


def _counting(text: str, cut: bool) -> Loop | None:
    """A loop in which only a number changes: "Step 41: check the valve. Step 42: check the valve." to the end."""
    flat = folds.NUMBERS.folded(text)
    if _DIGITS.search(text) is None:
        return None
    run = periods.final_run(flat)
    if run is None or run.repeats < (6 if cut else 30) or run.stop < len(flat):
        return None
    loop = _loop(flat, run, exact=False)
    is_item = run.repeats >= _EMPTY_ITEMS and _EMPTY_ITEM.fullmatch(loop.unit) is not None
    if not is_item and (loop.num_words < 2 or run.length < 150):
        return None
    start = folds.NUMBERS.unfolded(text, run.start)
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


def _folded(text: str, fold: folds.Fold) -> Loop | None:
    """A loop in which the spaces between the copies change, or the marks, or capitals."""
    flat = fold.folded(text)
    run = periods.final_run(flat)
    if run is None or run.length < 60 or run.repeats < 8:
        return None
    loop = _loop(flat, run, exact=False)
    if (fold is folds.MARKS and not loop.num_words) or not enough.up_to_the_limit(loop):
        return None
    start, stop = fold.unfolded(text, loop.start), fold.unfolded(text, loop.start + run.period)
    return Loop(start, len(text), text[start:stop], loop.repeats, False, (len(text) - start) / len(text))


def _monotone(text: str) -> Loop | None:
    found = find_monotone(text)
    if found is None:
        return None
    start, sign, num = found
    return Loop(start, len(text), sign, num, False, (len(text) - start) / len(text))


def _may_repeat(text: str) -> bool:
    """Whether it is worth looking closer: the end is well compressed, or stood in the text before."""
    data = text[-_RATIO_CHARS:].encode("utf-8", "replace")
    if len(zlib.compress(data, 1)) < _LOOK_AT_RATIO * len(data) + 12:
        return True
    places = [len(text) - back for back in _ANCHORS if back < len(text)]
    return any(text.find(text[place : place + _ANCHOR], 0, place) >= 0 for place in places)


def _in_words(text: str) -> Iterator[Loop]:
    """Loops that only their words show."""
    offset = max(0, len(text) - _READ_CHARS)
    found = pieces.cut(text, offset)
    copied = copies.find_copies(found)
    if copied is not None:
        first, period = copied
        start, stop = found.places[first], found.places[first + period]
        if not drift.is_markup(text[start:]):
            yield _fuzzy(text, start, stop, (len(found) - first) / period)
    first_stale = drift.find_drift(text, found)
    if first_stale is not None:
        start = found.places[first_stale]
        said = found.said[first_stale:]
        yield _fuzzy(text, start, len(text), len(said) / len(set(said)))


def _fuzzy(text: str, start: int, stop: int, repeats: float) -> Loop:
    return Loop(start, len(text), text[start:stop], repeats, False, (len(text) - start) / len(text))


def _stuttering(text: str) -> Loop | None:
    found = find_stutter(text)
    return None if found is None else _fuzzy(text, found.start, found.start + len(found.unit), found.copies)
