"""Ends of a text in which a few signs take turns: one digit with others strewn in, two or three emoji. Pure."""

from __future__ import annotations

import re
from collections import Counter

_DIGITS = re.compile(r"[0-9 ]+\Z")
_SIGNS = re.compile(r"(?:[^\w\x00-\x7f\u2500-\u259f\u2800-\u28ff]|[ \u200d])+\Z")
LEAST_DIGITS, DIGIT_SHARE = 120, 0.8
LEAST_SIGNS, KINDS_PER_SIGN = 60, 0.1


def find_monotone(text: str) -> tuple[int, str, int] | None:
    """(start, the sign that is most of it, how often it comes) of such an end, or None."""
    for pattern, least, share, kinds in (
        (_DIGITS, LEAST_DIGITS, DIGIT_SHARE, 1.0),
        (_SIGNS, LEAST_SIGNS, 0.0, KINDS_PER_SIGN),
    ):
        match = pattern.search(text, max(0, len(text) - 4000))
        if match is None:
            continue
        found = Counter(match.group().replace(" ", ""))
        total = found.total()
        if total < least or len(found) > kinds * total:
            continue
        sign, num = found.most_common(1)[0]
        if num >= share * total:
            return match.start(), sign, num
    return None
