"""Checks of words and letters: there, absent, how often, in which order, and in which language. Pure."""

from __future__ import annotations

from pydantic import Field, field_validator

from qgate.schemas.base import Frozen
from qgate.scorers import languages, segment
from qgate.scorers.checks.check import Bounds, Check
from qgate.scorers.text import Phrase, Spellings, find, first, normalise


class KeywordsArgs(Frozen):
    """Arguments of `keywords:existence` and `keywords:order`."""

    keywords: tuple[Spellings, ...] = Field(min_length=1, description="Words or phrases; a list in it: any spelling")


def _existence(text: str, args: KeywordsArgs, language: str) -> bool:
    searched = normalise(text)
    return all(first(searched, value) is not None for value in args.keywords)


def _order(text: str, args: KeywordsArgs, language: str) -> bool:
    searched = normalise(text)
    starts = [at for value in args.keywords if (at := first(searched, value)) is not None]
    return len(starts) == len(args.keywords) and starts == sorted(set(starts))


class ForbiddenArgs(Frozen):
    """Arguments of `keywords:forbidden_words`."""

    forbidden_words: tuple[Phrase, ...] = Field(min_length=1, description="Words none of which may appear")


def _forbidden(text: str, args: ForbiddenArgs, language: str) -> bool:
    searched = normalise(text)
    return all(first(searched, word) is None for word in args.forbidden_words)


class KeywordArgs(Bounds):
    """Arguments of `keywords:frequency`."""

    keyword: Phrase = Field(description="The word that is counted")


def _frequency(text: str, args: KeywordArgs, language: str) -> bool:
    return args.fit(len(find(normalise(text), normalise(args.keyword))))


class EverySentenceArgs(Frozen):
    """Arguments of `keywords:every_sentence`."""

    keyword: Phrase = Field(description="The word that each sentence must hold")


def _every_sentence(text: str, args: EverySentenceArgs, language: str) -> bool:
    found = segment.sentences(text)
    return bool(found) and all(first(normalise(one), args.keyword) is not None for one in found)


class LetterArgs(Bounds):
    """Arguments of `keywords:letter_frequency`."""

    letter: str = Field(min_length=1, max_length=1, description="A letter or ideograph, counted in either case")


def _letters(text: str, args: LetterArgs, language: str) -> bool:
    return args.fit(text.casefold().count(args.letter.casefold()))


class LanguageArgs(Frozen):
    """Arguments of `language:response_language`."""

    language: str = Field(description="BCP 47 tag of the language that the whole answer must be in")

    @field_validator("language")
    @classmethod
    def _can_be_told(cls, value: str) -> str:
        if not languages.known(value):
            raise ValueError(f"qgate cannot tell the language {value!r} without a model")
        return value


CHECKS = (
    Check("keywords:existence", "All the words are there", KeywordsArgs, _existence),
    Check("keywords:order", "All the words are there, first mentioned in this order", KeywordsArgs, _order),
    Check("keywords:forbidden_words", "None of the words is there", ForbiddenArgs, _forbidden),
    Check("keywords:frequency", "How often a word is there", KeywordArgs, _frequency),
    Check("keywords:every_sentence", "A word is in every sentence", EverySentenceArgs, _every_sentence),
    Check("keywords:letter_frequency", "How often a letter or ideograph is there", LetterArgs, _letters),
    Check(
        "language:response_language",
        "The language of the answer, by script and function words",
        LanguageArgs,
        lambda t, a, lang: languages.is_language(t, a.language),
    ),
)
