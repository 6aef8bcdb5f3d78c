"""Checks of the surface: how an answer starts and ends, its quotes, case and punctuation. Pure."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, model_validator

from qgate.schemas.base import Frozen
from qgate.scorers import segment
from qgate.scorers.checks.check import Bounds, Check, NoArgs
from qgate.scorers.text import Phrase, normalise

_COMMAS = frozenset(",，、،､﹐﹑")
_QUOTES = {'"': ('"', "“", "”", "„", "＂")}
_TRAILING = " \n\t.。!！?？…*_\"'”’」』»)"


class PhraseArgs(Frozen):
    """Arguments of `startend:start_checker` and `startend:end_checker`."""

    phrase: Phrase = Field(description="The exact phrase, compared without regard to case and width")


def _starts(text: str, args: PhraseArgs, language: str) -> bool:
    return normalise(text).lstrip("*_#> ").startswith(normalise(args.phrase))


def _ends(text: str, args: PhraseArgs, language: str) -> bool:
    answer, phrase = normalise(text), normalise(args.phrase)
    return answer.endswith(phrase) or answer.rstrip(_TRAILING).endswith(phrase.rstrip(_TRAILING) or phrase)


class QuotationArgs(Frozen):
    """Arguments of `startend:quotation`."""

    open: str = Field(default='"', min_length=1, max_length=1, description="Mark at the very start")
    close: str = Field(default='"', min_length=1, max_length=1, description="Mark at the very end")


def _quotation(text: str, args: QuotationArgs, language: str) -> bool:
    answer = text.strip()
    opens, closes = _QUOTES.get(args.open, (args.open,)), _QUOTES.get(args.close, (args.close,))
    return len(answer) > 2 and answer[0] in opens and answer[-1] in closes


class EachLineArgs(Frozen):
    """Arguments of `startend:each_line`."""

    prefix: str = Field(default="", description="What every line must open with")
    suffix: str = Field(default="", description="What every line must close with")

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.prefix or self.suffix):
            raise ValueError("needs `prefix`, `suffix` or both")
        return self


def _each_line(text: str, args: EachLineArgs, language: str) -> bool:
    found = segment.lines(text)
    return bool(found) and all(line.startswith(args.prefix) and line.endswith(args.suffix) for line in found)


class AcrosticArgs(Frozen):
    """Arguments of `startend:acrostic`."""

    initials: str = Field(min_length=2, description="First letters of the lines, from top to bottom")


def _acrostic(text: str, args: AcrosticArgs, language: str) -> bool:
    heads = [next((ch for ch in line if ch.isalnum()), "") for line in segment.lines(text)]
    return normalise("".join(heads)) == normalise(args.initials)


def _upper(text: str, args: NoArgs, language: str) -> bool:
    return not any(ch.islower() for ch in text) and any(ch.isupper() for ch in text)


def _lower(text: str, args: NoArgs, language: str) -> bool:
    return not any(ch.isupper() for ch in text) and any(ch.islower() for ch in text)


def _title(text: str, args: NoArgs, language: str) -> bool:
    """Every word of four letters or more begins with a capital, as does the first."""
    found = [word for word in segment.words(text) if word[0].isalpha()]
    return bool(found) and found[0][0].isupper() and all(word[0].isupper() for word in found if len(word) >= 4)


def _capital_words(text: str, args: Bounds, language: str) -> bool:
    return args.fit(sum(word.isupper() for word in segment.words(text)))


class MarksArgs(Frozen):
    """Arguments of `punctuation:forbidden` and `punctuation:sentence_end`."""

    marks: str = Field(min_length=1, description="Characters, one after the other")


def _no_marks(text: str, args: MarksArgs, language: str) -> bool:
    return not any(mark in text for mark in args.marks)


def _sentence_end(text: str, args: MarksArgs, language: str) -> bool:
    found = segment.sentences(text)
    return bool(found) and all(re.sub(r"[\"'”’」』»)*_\s]+\Z", "", one)[-1:] in args.marks for one in found)


def _no_comma(text: str, args: NoArgs, language: str) -> bool:
    return not any(ch in _COMMAS for ch in text)


CHECKS = (
    Check("startend:start_checker", "Opens with a phrase", PhraseArgs, _starts),
    Check("startend:end_checker", "Ends with a phrase; its end mark may differ", PhraseArgs, _ends),
    Check("startend:quotation", "The whole answer stands in quotation marks", QuotationArgs, _quotation),
    Check("startend:each_line", "What every line opens or closes with", EachLineArgs, _each_line),
    Check("startend:acrostic", "First letters of the lines", AcrosticArgs, _acrostic),
    Check("change_case:uppercase", "No lowercase letter", NoArgs, _upper),
    Check("change_case:lowercase", "No uppercase letter", NoArgs, _lower),
    Check(
        "change_case:title",
        "The first word and every word of four letters or more begin with a capital",
        NoArgs,
        _title,
    ),
    Check("change_case:capital_word_frequency", "Number of words in capitals", Bounds, _capital_words),
    Check("punctuation:no_comma", "No comma of any script, no 、", NoArgs, _no_comma),
    Check("punctuation:forbidden", "None of the marks is there", MarksArgs, _no_marks),
    Check("punctuation:sentence_end", "Every sentence ends with one of the marks", MarksArgs, _sentence_end),
)
