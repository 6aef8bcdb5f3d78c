"""`enumeration` and `free_text`: long answers, by what is there and is new. Pure."""

from __future__ import annotations

import re

from pydantic import Field

from qgate.schemas.base import Frozen
from qgate.scorers.builtin import BuiltIn
from qgate.scorers.languages import script_share
from qgate.scorers.novelty import num_fresh
from qgate.scorers.numerals import han_value
from qgate.scorers.presence import longest_rising
from qgate.scorers.segment import lines, words
from qgate.scorers.text import UNSPACED_LANGUAGES, Spellings, ascii_digits, first, normalise, primary

_HAN = "〇零一二三四五六七八九十百"
_STEP = re.compile(
    r"[\s*_#>\-•]*(?:(?:step|paso|шаг|الخطوة|خطوة|ขั้นตอนที่|ขั้นที่|ข้อที่|ข้อ|ステップ|手順|步骤|步驟)\s*)?"
    rf"(?:第\s*)?(\d{{1,4}}|[{_HAN}]{{1,5}})\s*[*_]*(?:[.)\]:、\-]|[步条步項项章]|$)(.*)",
    re.IGNORECASE,
)


class EnumerationArgs(Frozen):
    """Arguments of `enumeration`."""

    count: int = Field(ge=1, description="Entries wanted, numbered from 1")
    distinct: bool = Field(default=True, description="An entry that repeats an earlier one's text does not count")


def _enumeration(text: str, args: EnumerationArgs, language: str) -> float:
    entries = [entry for line in lines(text) if (entry := _entry(line)) is not None]
    seen: set[str] = set()
    fresh: list[int] = []
    for number, body in entries:
        if 1 <= number <= args.count and body and not (args.distinct and body in seen):
            fresh.append(number)
        seen.add(body)
    return longest_rising(fresh) / max(args.count, len(entries))


def _entry(line: str) -> tuple[int, str] | None:
    """Number and text of a numbered line: `3. …`, `Step 3: …`, `第三步：…`, `٣- …`."""
    match = _STEP.match(ascii_digits(line.replace("：", ":").replace("．", ".").replace("）", ")")))
    if match is None:
        return None
    body = " ".join(words(normalise(match[2])))
    return (int(match[1]) if match[1].isdecimal() else han_value(match[1])), body


class FreeTextArgs(Frozen):
    """Arguments of `free_text`."""

    length: int = Field(ge=1, description="Words wanted (characters in zh, ja, th)")
    values: tuple[Spellings, ...] = Field(
        default=(), description="Phrases that must appear; the score takes their share"
    )


def _free_text(text: str, args: FreeTextArgs, language: str) -> float:
    units = [word.casefold() for word in words(text)]
    span = 12 if primary(language) in UNSPACED_LANGUAGES else 5
    reached = min(1.0, num_fresh(units, span) / args.length)
    searched = normalise(text)
    held = sum(first(searched, value) is not None for value in args.values) / len(args.values) if args.values else 1.0
    return reached * held * script_share(text, language)


ENUMERATION = BuiltIn(
    "enumeration",
    "Share of the numbers 1…count that head entries, in order and with new text; surplus and repeated entries cost",
    EnumerationArgs,
    _enumeration,
)

FREE_TEXT = BuiltIn(
    "free_text",
    "Share of `length` reached with new text in the language's script, times the share of `values` present",
    FreeTextArgs,
    _free_text,
)
