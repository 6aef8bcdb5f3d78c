"""mojibake: bytes decoded as what they are not. A view in, a hit or None out. Pure."""

from __future__ import annotations

import re

from qgate.judge.defects.misread import find_misread
from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "mojibake"
SUMMARY = "broken characters: U+FFFD, UTF-8 read as Latin-1, cp1251 or GBK, lone surrogates, byte-level tokens"

_UNQUOTED = re.compile("(?<![\"'`(“‘«「])\ufffd|\ufffd(?![\"'`)”’»」])")
_BYTE_TOKENS = re.compile(r"[a-z,.;:)]Ġ[A-Za-z(]|\w▁[A-Za-z]|<0x[0-9A-F]{2}>|[a-z.]ĊĠ?[A-Za-z]")
_CONTROL_TOKEN = re.compile(r"<｜[^｜\n]{1,40}｜>")
_LEAST_BYTE_TOKENS = 2


def detect(view: View) -> DefectHit | None:
    """The first broken character, unless the prompt or the answer is about such characters."""
    text = view.text
    if text.isascii() and text.isprintable() and "<0x" not in text:
        return None
    body = text.rstrip("\ufffd") if view.seen.cut else text  # the limit may fall inside a character
    found = _replacement(body) or find_misread(body) or _byte_tokens(body)
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


def _byte_tokens(text: str) -> tuple[int, str] | None:
    if not any(mark in text for mark in ("Ġ", "▁", "<0x", "Ċ")):
        return None
    if "｜" in text:
        text = _CONTROL_TOKEN.sub(lambda match: " " * len(match.group()), text)
    found = list(_BYTE_TOKENS.finditer(text[:20_000]))
    return (found[0].start(), "byte-level tokens") if len(found) >= _LEAST_BYTE_TOKENS else None
