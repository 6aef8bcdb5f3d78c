"""Answers to an incident's tries, kept by what they answer: a content key in, a log that grows out. Touches the disk.

    objects/tries/<key>/answers.jsonl   every answer of one way to serve one checkpoint, as it came
    objects/tries/<key>/engine.json     what served it

A log is never finished: the next run reads what is there and asks only for what is missing. What did not come (an error,
a timeout) is asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from qgate.errors import ArtefactError
from qgate.io import artefact
from qgate.io.answer_log import AnswerLog, whole_answers
from qgate.io.files import alone, disk_errors
from qgate.judge.observe import came
from qgate.schemas.answers import Answer, EngineFacts

FACTS = "engine.json"


class TryLog:
    """One log. Use as a context: it is this process's alone while it lasts."""

    def __init__(self, folder: Path, on_wait: Callable[[], None] = lambda: None) -> None:
        """`on_wait` is called once where another process has it."""
        self.folder = folder
        self._on_wait = on_wait

    def __enter__(self) -> Self:
        with disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.enter_context(alone(self.folder.with_suffix(".lock"), self._on_wait))
            self._log = stack.enter_context(AnswerLog(self.folder))
            self.answers = {answer.id: answer for answer in whole_answers(self.folder) if came(answer)}
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def add(self, answer: Answer) -> None:
        """Keep one answer; of two with one id the later counts."""
        self._log.append(answer)
        self.answers[answer.id] = answer

    def save_facts(self, facts: EngineFacts) -> None:
        """Keep what served it."""
        artefact.save(self.folder / FACTS, facts)

    def facts(self) -> EngineFacts | None:
        """What served it, where it was asked before."""
        try:
            return artefact.load(self.folder / FACTS, EngineFacts)
        except ArtefactError:
            return None
