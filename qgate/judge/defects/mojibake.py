"""mojibake: bytes decoded as what they are not. A view in, a hit or None out. Pure."""

from __future__ import annotations

import re

from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "mojibake"
SUMMARY = "broken characters: U+FFFD, UTF-8 read as Latin-1, cp1251 or GBK, lone surrogates, byte-level tokens"

# A UTF-8 sequence whose bytes were read as cp1252 (or Latin-1, where cp1252 has no character).
_TAIL = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_SURE = re.compile(
    rf"Ã[\x80-\xbf€‚ƒ„†‡ˆ‰Š‹ŒŽ•˜™š›œžŸ](?=[^\WÃ]|[\s.,;:!?)]|$)|Ã\xa0|Â[\xa0-\xbf](?=\W|\d|$)|â€[\x80-\xbf™œ˜ž“”¦¢¡šŸ‹›]|â‚¬"
    rf"|ðŸ{_TAIL}{_TAIL}|ï»¿|[äåæçèé]{_TAIL}{_TAIL}(?:[äåæçèéï]{_TAIL}{_TAIL})+|(?:[ÐÑ]{_TAIL}){{3}}|(?:[Ã˜Ã™ØÙ]{_TAIL}){{4}}"
    "|锟斤拷|锘縷?|烫烫烫|屯屯屯"
)
_CP1251 = re.compile(r"(?:[РС][\u0080-\u04ff\u2010-\u2122]){4,}")
_SHIFT_JIS = re.compile(r"[縺繧繝][^\s縺繧繝a-z]?(?:[縺繧繝][^\s縺繧繝a-z]?){2,}")
_HAN_RUN = re.compile(r"[一-鿿\ue000-\uf8ff€]{6,}")
_BROKEN = re.compile("[\ud800-\udfff]|[\x80-\x84\x86-\x9f]")
_UNQUOTED = re.compile("(?<![\"'`(“‘«「])\ufffd|\ufffd(?![\"'`)”’»」])")
_BYTE_TOKENS = re.compile(r"[a-z,.;:)]Ġ[A-Za-z(]|\w▁[A-Za-z]|<0x[0-9A-F]{2}><0x[0-9A-F]{2}>|[a-z.]ĊĠ?[A-Za-z]")
_LEAST_BYTE_TOKENS = 2


def detect(view: View) -> DefectHit | None:
    """The first broken character, unless the prompt or the answer is about such characters."""
    text = view.text
    if text.isascii() and "<0x" not in text:
        return None
    body = text.rstrip("\ufffd") if view.seen.cut else text  # the limit may fall inside a character
    found = _replacement(body) or _misread(body) or _byte_tokens(body)
    if found is None or (view.wishes.decoding and found[1] != "lone surrogate"):
        return None
    start, what = found
    return DefectHit(NAME, start, f"{what} at {text[max(0, start - 8) : start + 12]!r}")


def _replacement(text: str) -> tuple[int, str] | None:
    """The first U+FFFD that is not shown for its own sake: by name, or alone between quotes."""
    if "\ufffd" not in text or "fffd" in text.lower() or "replacement char" in text.lower():
        return None
    match = _UNQUOTED.search(text)
    return None if match is None else (match.start(), "U+FFFD")


def _misread(text: str) -> tuple[int, str] | None:
    if (match := _BROKEN.search(text)) is not None:
        return match.start(), "lone surrogate" if match.group() >= "\ud800" else "C1 control"
    if (match := _SURE.search(text)) is not None:
        return match.start(), "UTF-8 read as another encoding"
    if (match := _SHIFT_JIS.search(text)) is not None:
        return match.start(), "UTF-8 read as Shift-JIS"
    for match in _CP1251.finditer(text):
        if _decodes(match.group(), "cp1251"):
            return match.start(), "UTF-8 read as cp1251"
    for match in _HAN_RUN.finditer(text):
        if _decodes(match.group()[: len(match.group()) // 3 * 3], "gbk"):
            return match.start(), "UTF-8 read as GBK"
    return None


def _decodes(run: str, charset: str) -> bool:
    """Whether the bytes that `charset` has for `run` are UTF-8 of other letters: chance does not do that."""
    try:
        return run.encode(charset).decode("utf-8") != run
    except UnicodeError:
        return False


def _byte_tokens(text: str) -> tuple[int, str] | None:
    found = list(_BYTE_TOKENS.finditer(text[:20_000]))
    return (found[0].start(), "byte-level tokens") if len(found) >= _LEAST_BYTE_TOKENS else None
