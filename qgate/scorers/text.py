"""Text → its comparable form, and where a phrase stands in it as a whole word. Touches nothing."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator

UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
                      "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003fffd]")  # fmt: skip
"""A character of a script that writes words without spaces (or, as Hangul, with particles attached)."""

UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th"})
"""Languages whose lengths are counted in characters."""

_ARABIC_MARKS = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670]")
_ARABIC_CLITICS = re.compile("[وف]?(?:[بكل]?(?:ال)?|لل)")
_FOLDS = str.maketrans(
    "أإآٱىةё“”„«»‘’‐‑–—−",
    "ااااي\u0647е" + '"' * 5 + "''" + "-" * 5,
)
_THINKING = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)", re.DOTALL)


def answer_part(text: str) -> str:
    """The text after a leading `<think>…</think>` block; nothing where that block was never closed."""
    return _THINKING.sub("", text, count=1)


def primary(language: str) -> str:
    """The primary subtag of a BCP 47 tag: `zh` of `zh-Hant`."""
    return language.lower().replace("_", "-").split("-", 1)[0]


def ascii_digits(text: str) -> str:
    """Decimal digits of every script as 0–9: full-width, Arabic-Indic, Thai."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(ch)) if not ch.isascii() and ch.isdecimal() else ch for ch in text)


def visible(text: str) -> str:
    """NFKC without format characters: zero-width spaces, byte order marks, marks of direction."""
    if text.isascii():
        return text
    return "".join(ch for ch in unicodedata.normalize("NFKC", text) if unicodedata.category(ch) != "Cf")


def normalise(text: str) -> str:
    """Comparable form: NFKC, no format characters, one kind of digit, quote and dash, folded case, single spaces.

    Arabic loses vowel marks and tatweel and writes alef, ya and ta marbuta one way; Russian ё reads е.
    """
    text = _ARABIC_MARKS.sub("", ascii_digits(visible(text)).casefold()).translate(_FOLDS)
    return " ".join(text.split())


def is_word_char(ch: str) -> bool:
    """Whether `ch` continues a word in a script that separates words by spaces."""
    return (ch.isalnum() or unicodedata.category(ch) == "Mn") and not UNSPACED.match(ch)


def find(text: str, phrase: str) -> list[int]:
    """Starts of `phrase` in `text` (both taken as they are), as a whole word where the script separates words.

    Digits do not match inside a longer number (42 in 42.5 or 1,042); an Arabic word may carry a clitic (و, ب, ال…).
    """
    starts = [match.start() for match in re.finditer(re.escape(phrase), text)] if phrase else []
    return [start for start in starts if _opens(text, start) and _closes(text, start + len(phrase))]


def _opens(text: str, start: int) -> bool:
    first, before = text[start], text[max(0, start - 2) : start]
    if first.isdecimal() and re.fullmatch(r"\d[.,]", before):
        return False
    if not is_word_char(first) or not before or not is_word_char(before[-1]):
        return True
    if "\u0600" <= first <= "\u06ff":
        head = start
        while head and is_word_char(text[head - 1]) and start - head < 6:
            head -= 1
        return _ARABIC_CLITICS.fullmatch(text[head:start]) is not None
    return False


def _closes(text: str, end: int) -> bool:
    last, after = text[end - 1], text[end : end + 2]
    if last.isdecimal() and re.match(r"[.,]\d", after):
        return False
    return not (after and is_word_char(last) and is_word_char(after[0]))


def _comparable(value: str) -> str:
    if not normalise(value):
        raise ValueError("has no character left after normalisation")
    return value


def _some(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        raise ValueError("needs at least one spelling")
    return value


Phrase = Annotated[str, AfterValidator(_comparable)]
"""A string that is not empty once normalised."""

Spellings = Phrase | Annotated[tuple[Phrase, ...], AfterValidator(_some)]
"""One phrase, or several spellings any of which will do."""


def spellings(value: Spellings) -> tuple[str, ...]:
    """The alternatives of a value, one or many."""
    return (value,) if isinstance(value, str) else value


def first(text: str, value: Spellings, *, fold: bool = True) -> int | None:
    """Where any spelling of `value` first stands in `text`; None where none does. `fold`: compare normalised."""
    starts = [at for one in spellings(value) for at in find(text, normalise(one) if fold else one)]
    return min(starts, default=None)
