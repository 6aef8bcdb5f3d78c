"""Checks of how much there is: words, characters, sentences, lines, paragraphs, list entries. Pure."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from qgate.schemas.base import Frozen
from qgate.scorers import segment
from qgate.scorers.checks.check import Bounds, Check
from qgate.scorers.text import Phrase, find, normalise


class ParagraphArgs(Bounds):
    """Arguments of `length_constraints:number_paragraphs`."""

    divider: Literal["blank", "***"] = Field(default="blank", description="What stands between two paragraphs")


def _paragraphs(text: str, args: ParagraphArgs, language: str) -> bool:
    if args.divider == "blank":
        return args.fit(len(segment.paragraphs(text)))
    return args.fit(sum(bool(block.strip()) for block in re.split(r"^[ \t]*\*\*\*[ \t]*$", text, flags=re.MULTILINE)))


class FirstWordArgs(Bounds):
    """Arguments of `length_constraints:nth_paragraph_first_word`; `min` and `max` bound the paragraphs."""

    nth: int = Field(ge=1, description="Paragraph, counted from 1")
    first_word: Phrase = Field(description="What it must open with")


def _first_word(text: str, args: FirstWordArgs, language: str) -> bool:
    blocks = segment.paragraphs(text)
    if not args.fit(len(blocks)) or len(blocks) < args.nth:
        return False
    opening = normalise(blocks[args.nth - 1]).lstrip("*_#\"'「『《(- ")
    return 0 in find(opening, normalise(args.first_word))


def _each_sentence(text: str, args: Bounds, language: str) -> bool:
    found = segment.sentences(text)
    return bool(found) and all(args.fit(len(segment.words(one))) for one in found)


class LineLengthArgs(Frozen):
    """Arguments of `length_constraints:line_lengths`."""

    lengths: tuple[int, ...] = Field(min_length=1, description="Words (characters in zh, ja, th) of each line in turn")


def _line_lengths(text: str, args: LineLengthArgs, language: str) -> bool:
    return tuple(len(segment.words(line)) for line in segment.lines(text)) == args.lengths


class SeparatedArgs(Bounds):
    """Arguments of `detectable_format:separated_items`."""

    separator: str = Field(min_length=1, description="What stands between two items")


def _separated(text: str, args: SeparatedArgs, language: str) -> bool:
    items = text.strip().split(args.separator)
    return all(any(ch.isalnum() for ch in item) for item in items) and args.fit(len(items))


class NumberedArgs(Bounds):
    """Arguments of `detectable_format:number_numbered_lists`."""


def _numbered(text: str, args: NumberedArgs, language: str) -> bool:
    found = segment.numbered(text)
    return args.fit(len(found)) and found == list(range(1, len(found) + 1))


CHECKS = (
    Check(
        "length_constraints:number_words",
        "Number of words; each character is one in zh, ja and th",
        Bounds,
        lambda t, a, lang: a.fit(len(segment.words(t))),
    ),
    Check(
        "length_constraints:number_characters",
        "Number of letters, ideographs and digits",
        Bounds,
        lambda t, a, lang: a.fit(len(segment.characters(t))),
    ),
    Check(
        "length_constraints:number_sentences",
        "Number of sentences, by end marks and line breaks",
        Bounds,
        lambda t, a, lang: a.fit(len(segment.sentences(t))),
    ),
    Check(
        "length_constraints:number_lines",
        "Number of lines that are not empty",
        Bounds,
        lambda t, a, lang: a.fit(len(segment.lines(t))),
    ),
    Check("length_constraints:number_paragraphs", "Number of paragraphs", ParagraphArgs, _paragraphs),
    Check(
        "length_constraints:nth_paragraph_first_word",
        "Number of paragraphs, and the word that one of them opens with",
        FirstWordArgs,
        _first_word,
    ),
    Check("length_constraints:sentence_length", "Number of words in each sentence", Bounds, _each_sentence),
    Check(
        "length_constraints:line_lengths", "Exact number of words of each line in turn", LineLengthArgs, _line_lengths
    ),
    Check(
        "detectable_format:number_bullet_lists",
        "Number of bullet points",
        Bounds,
        lambda t, a, lang: a.fit(len(segment.bullets(t))),
    ),
    Check(
        "detectable_format:number_numbered_lists",
        "Number of entries of a numbered list that counts from 1 without a gap",
        NumberedArgs,
        _numbered,
    ),
    Check(
        "detectable_format:separated_items", "Number of items between separators, none empty", SeparatedArgs, _separated
    ),
)
