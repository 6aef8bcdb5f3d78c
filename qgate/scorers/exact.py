"""`exact` and `choice`: the answer is one of few known strings, or picks one of the options. Pure."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, model_validator

from qgate.schemas.base import Frozen
from qgate.scorers.builtin import BuiltIn
from qgate.scorers.text import Phrase, find, normalise

_EDGES = " \t\n.,;:!?…。，、；：！？؟،؛·*_`#\"'「」『』《》()（）[]【】¿¡"
_LETTERS = r"A-ZА-Я\u0600-\u06ff\u0e00-\u0e7f'"
_CLAIMS = (
    "IS|IT'S|OPTION|CHOOSE|PICK|GO WITH|是|为|選|选|择|擇|は|ОТВЕТ|ВАРИАНТ|ES(?: LA)?|OPCI[OÓ]N|คือ|ข้อ|ตอบ|هي|هو|الخيار"
)
_DENIED = r"(?<![不非因])(?<!不[应應能会會])(?<!\bNO )(?<!NOT )(?<!N'T )"  # 不是B, 因为B, no es B, cannot choose B
_OPTION = "(?:选项|選項)?"  # B选项
_CONFIRMS = (
    f"IS (?:THE )?(?:CORRECT|RIGHT|ANSWER)|{_OPTION}(?:是|は)?(?:正确|正確|对的|正しい)|が正(?!しくな|解で[はも]な|解じゃ)|"
    "ES (?:LA )?CORRECT|ВЕРН|ПРАВИЛЬН|ถูก|صحيح"
)
_ARTICLE = r"(?<=[AАВ])[ ][A-ZА-Я]"  # `is a lamp`, `в саду`: a word of the sentence, no letter of an option
_LOOKALIKES = str.maketrans("АВСЕН", "ABCEH")
_ALONE = re.compile(r"(?<![\w])[АВСЕН](?![\w])")


class ExactArgs(Frozen):
    """Arguments of `exact`."""

    values: tuple[Phrase, ...] = Field(min_length=1, description="Answers any of which is right")


def trimmed(text: str) -> str:
    """Normalised, without punctuation, quotes and Markdown marks around it."""
    return normalise(text).strip(_EDGES)


def _exact(text: str, args: ExactArgs, language: str) -> float:
    answer = trimmed(text)
    return float(bool(answer) and answer in {trimmed(value) for value in args.values})


class ChoiceArgs(Frozen):
    """Arguments of `choice`."""

    answer: str = Field(min_length=1, description="Letter of the right option")
    options: tuple[Phrase, ...] = Field(min_length=2, description="Texts of the options, in the order of `letters`")
    letters: str = Field(default="ABCDEFGHIJ", description="Letters of the options: ABCD, АБВГ, أبجد, กขคง")

    @model_validator(mode="after")
    def _answer_is_an_option(self) -> Self:
        if self.answer not in self.letters[: len(self.options)] or len(self.answer) != 1:
            raise ValueError("`answer` must be the letter of one of the `options`")
        return self


def _choice(text: str, args: ChoiceArgs, language: str) -> float:
    letters = args.letters[: len(args.options)]
    picked = _lettered(text, letters)
    if picked is None:
        searched = normalise(text)
        named = [letter for letter, option in zip(letters, args.options, strict=False) if _names(searched, option)]
        picked = named[0] if len(named) == 1 else None
    return float(picked == args.answer)


def _names(searched: str, option: str) -> bool:
    wanted = normalise(option).strip(_EDGES)
    return bool(wanted) and bool(find(searched, wanted))


def _lettered(text: str, letters: str) -> str | None:
    """The one letter that the answer opens with, names or has on a line alone: `B`, `**B**.`, `答案是B`, `Answer: B`."""
    lines = [line for line in (_folded(line, letters) for line in text.splitlines()) if any(map(str.isalnum, line))]
    folded = {normalise(letter).upper(): letter for letter in letters}
    one = "|".join(map(re.escape, folded))
    opens = [re.match(rf"[\W_]*({one})(?:\s*[.)\]:、*]|[\W_]*\Z)", line) for line in lines]
    sole = {match[1] for line in lines if (match := re.fullmatch(rf"[\W_]*({one}){_OPTION}[\W_]*", line))}
    all_said_again = [match and match[1] for match in opens[: len(folded)]] == list(folded)
    if lines and opens[0] and not all_said_again and len(sole) < 2:
        return folded[opens[0][1]]
    alone = rf"(?<![{_LETTERS}])({one})(?![{_LETTERS}])"
    whole = " ".join(lines)
    before = re.finditer(
        rf"{_DENIED}(?:[:(*{{>]|{_CLAIMS})\W{{0,3}}{alone}(?!{_ARTICLE}|(?:では|じゃ)(?:な|あ))", whole
    )
    after = re.finditer(rf"{alone}\W{{0,3}}(?:{_CONFIRMS})", whole)
    named = {match[1] for match in (*before, *after)} or sole
    return folded[named.pop()] if len(named) == 1 else None


def _folded(line: str, letters: str) -> str:
    """A line in capitals; a Cyrillic letter that stands alone becomes the Latin one that it looks like."""
    upper = normalise(line).upper()
    return _ALONE.sub(lambda match: match[0].translate(_LOOKALIKES), upper) if letters.isascii() else upper


EXACT = BuiltIn(
    "exact",
    "1 where the answer, without punctuation around it, is one of `values`",
    ExactArgs,
    _exact,
    lambda args: args.values[0],
)

CHOICE = BuiltIn(
    "choice",
    "1 where the answer picks the right option, by its letter or by its text alone",
    ChoiceArgs,
    _choice,
    lambda args: args.answer,
)
