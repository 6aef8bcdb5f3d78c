"""Text of a model made safe to look at: what would act on a terminal or hide is written out. Pure: text in, text out.

Model output is untrusted. Escape sequences, carriage returns, bidirectional overrides (Trojan Source, CVE-2021-42574)
and invisible characters are shown as `⟦U+202E⟧`; joiners (U+200C, U+200D) stay, since emoji and Persian need them.
"""

from __future__ import annotations

import re
import unicodedata

ELLIPSIS = "…"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ILLEGAL_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_JOINERS = frozenset("\u200c\u200d")
_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_OFFSET = re.compile(r"^char (\d+)")


def visible(text: str, *, keep_newlines: bool = False) -> str:
    """`text` with every control, format and surrogate character written as `⟦U+XXXX⟧`.

    Newlines become `⏎` and tabs `⇥` unless `keep_newlines`, which keeps both.
    """
    return "".join(_shown(character, keep_newlines) for character in text)


def _shown(character: str, keep_newlines: bool) -> str:
    if character in "\n\t":
        return character if keep_newlines else {"\n": "⏎", "\t": "⇥"}[character]
    if character in _JOINERS or unicodedata.category(character) not in _ACTING:
        return character
    return f"⟦U+{ord(character):04X}⟧"


def storable(text: str) -> str:
    """`text` as UTF-8 can hold it: surrogate pairs joined, lone surrogates replaced by U+FFFD."""
    if _LONE_SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def xml_text(text: str) -> str:
    """`text` without the characters that XML 1.0 forbids (production 2, Char), each replaced by U+FFFD."""
    return _ILLEGAL_IN_XML.sub("\ufffd", storable(text))


def one_line(text: str) -> str:
    """`text` on one line: runs of white space become one space, the rest is made visible."""
    return visible(" ".join(text.split()))


def offset_of(where: str) -> int:
    """The character offset that a place like `char 312: repetition_loop` names; 0 where it names none."""
    found = _OFFSET.match(where)
    return int(found.group(1)) if found else 0


def clip(text: str | None, start: int, width: int) -> str:
    """About `width` characters of `text` around offset `start`, on one visible line; a gap is marked by an ellipsis.

    A third of the width lies before `start`. None becomes `(no answer)`, an empty text `(empty)`.
    """
    if text is None:
        return "(no answer)"
    if not text:
        return "(empty)"
    begin = max(0, min(start, len(text) - 1) - width // 3)
    if len(text) <= width:
        begin = 0
    piece = text[begin : begin + width]
    head = ELLIPSIS if begin > 0 else ""
    tail = ELLIPSIS if begin + width < len(text) else ""
    return head + visible(piece) + tail
