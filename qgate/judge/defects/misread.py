"""Text whose bytes were decoded with the wrong encoding: text in, the first place and the mistake out. Pure.

A guess is checked by undoing the mistake: the letters are turned back into bytes, and these must be UTF-8.
"""

from __future__ import annotations

import re

# A UTF-8 sequence whose bytes were read as cp1252 (or Latin-1, where cp1252 has no character).
_TAIL = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_SURE = re.compile(
    r"Ã[\x80-\xbf€‚ƒ„†‡ˆ‰Š‹ŒŽ•˜™š›œžŸ](?=[^\WÃ]|[\s.,;:!?)]|$)|Ã\xa0|Â[\xa0-\xaa\xac-\xba\xbc-\xbf]"
    r"|â€[\x80-\xbf™œ˜ž“”¦¢¡šŸ‹›]|â‚¬|ï»¿"
    rf"|ðŸ{_TAIL}{_TAIL}|(?:ã{_TAIL}{{1,2}}){{3}}|[äåæçèé]{_TAIL}{_TAIL}(?:[äåæçèéï]{_TAIL}{_TAIL})+|(?:[ÐÑ]{_TAIL}){{3}}|(?:[ØÙ]{_TAIL}){{4}}"
    "|锟斤拷|锘縷?|烫烫烫|屯屯屯|(?<=[a-z])√[©®™†º∂§ü±ß≠≥°∫]"
)
_LEAD = re.compile("[ÃÂâðïãäåæçèéÐÑØÙ锟锘烫屯√]")
"""What `_SURE` begins with; looked for first, since one class is quicker than many alternatives."""
_CP1251 = re.compile(r"(?:[РС][\u0080-\u04ff\u2010-\u2122]){4,}")
_CP1251_AS_LATIN = re.compile(r"(?<![À-ÿ])(?:[À-ÿ]{4,}[ ,.]+){2}")
"""Words without one plain letter: Cyrillic read as Latin-1. Looked for where a word begins: else a flood of one letter would
be read anew from each of its letters."""
_SHIFT_JIS = re.compile(r"[縺繧繝][^\s縺繧繝a-z]?(?:[縺繧繝][^\s縺繧繝a-z]?){2,}")
_LEAST_LETTER = {"cp1251": "\u0400", "gbk": "\u0800"}
"""Letters below are made by chance: two ideographs may hold the bytes of one."""
_LEAST_LETTERS, _MOST_LOST = 3, 0.2
_HAN_RUN = re.compile(r"[一-鿿ぁ-ヿ！-｠\ue000-\uf8ff]{6,}")
_BROKEN = re.compile(
    "(?P<surrogate>[\ud800-\udfff])|(?P<control>[\x00-\x07\x80-\x84\x86-\x9f])"
    "|(?P<invisible>[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]{4})"
)
_BROKEN_AS = {
    "surrogate": "lone surrogate",
    "control": "control character",
    "invisible": "invisible characters in a row",
}


def find_misread(text: str) -> tuple[int, str] | None:
    """Where bytes were read as another encoding, and which."""
    if (match := _BROKEN.search(text)) is not None:
        return match.start(), _BROKEN_AS[match.lastgroup or ""]
    if _LEAD.search(text) is not None and (match := _SURE.search(text)) is not None:
        return match.start(), "UTF-8 read as another encoding"
    if (match := _CP1251_AS_LATIN.search(text)) is not None:
        return match.start(), "cp1251 read as Latin-1"
    if (match := _SHIFT_JIS.search(text)) is not None:
        return match.start(), "UTF-8 read as Shift-JIS"
    for lead, pattern, charset in (("Р", _CP1251, "cp1251"), ("", _HAN_RUN, "gbk")):
        if lead not in text:
            continue
        for match in pattern.finditer(text):
            if _decodes(match.group(), charset):
                return match.start(), f"UTF-8 read as {charset}"
    return None


def _decodes(run: str, charset: str) -> bool:
    """Whether the bytes that `charset` has for `run` are UTF-8 of letters, but for a few lost: chance makes no such."""
    decoded = run.encode(charset, "ignore").decode("utf-8", "replace")
    lost = decoded.count("\ufffd")
    if lost > max(1, _MOST_LOST * len(decoded)):
        return False
    least = _LEAST_LETTER[charset]
    good = sum(char >= least and char.isalpha() for char in decoded)
    return good >= _LEAST_LETTERS and lost <= max(1, _MOST_LOST * good)
