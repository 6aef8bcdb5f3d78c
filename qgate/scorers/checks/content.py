"""Checks of what is said and nothing else: one of few answers, the prompt repeated, two answers. Pure."""

from __future__ import annotations

import re

from pydantic import Field

from qgate.schemas.base import Frozen
from qgate.scorers.checks.check import Check, NoArgs
from qgate.scorers.text import Phrase, normalise

_END = " .。．"


class OptionsArgs(Frozen):
    """Arguments of `detectable_format:constrained_response`."""

    options: tuple[Phrase, ...] = Field(min_length=1, description="Answers allowed, word for word")


def _one_of(text: str, args: OptionsArgs, language: str) -> bool:
    """The whole answer is one of the options; a full stop after it and marks of emphasis around it are let pass."""
    answer = normalise(text).strip("*_`").strip(_END).strip("*_`")
    return answer in {normalise(option).strip(_END) for option in args.options}


class RepeatArgs(Frozen):
    """Arguments of `combination:repeat_prompt`."""

    prompt_to_repeat: Phrase = Field(description="Text that the answer must open with, word for word")
    only: bool = Field(default=False, description="Nothing may follow it")


def _repeats(text: str, args: RepeatArgs, language: str) -> bool:
    answer, wanted = " ".join(text.split()).strip("\"'“”「」"), " ".join(args.prompt_to_repeat.split())
    return answer == wanted if args.only else answer.startswith(wanted)


def _two(text: str, args: NoArgs, language: str) -> bool:
    """Two different answers with six asterisks between them."""
    parts = [" ".join(part.split()) for part in re.split(r"\*{6}", text) if part.strip()]
    return len(parts) == 2 and parts[0] != parts[1]


CHECKS = (
    Check(
        "detectable_format:constrained_response",
        "The whole answer is one of the options; a full stop or emphasis around it is let pass",
        OptionsArgs,
        _one_of,
    ),
    Check("combination:repeat_prompt", "Opens with a given text, word for word and in its case", RepeatArgs, _repeats),
    Check("combination:two_responses", "Two different answers with six asterisks between them", NoArgs, _two),
)
