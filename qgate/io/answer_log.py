"""Answers on disk as they arrive: JSON lines, of which at most the last can be torn. Touches the disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from qgate.errors import ArtefactError
from qgate.io.files import disk_errors
from qgate.schemas.answers import Answer

FILE = "answers.jsonl"


class AnswerLog:
    """Appends answers to `folder/answers.jsonl`. Opening it drops a torn last line and tells what is there already."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.done = {answer.id for answer in _mend(self.path)}

    def __enter__(self) -> Self:
        with disk_errors(self.path):
            self._stream = self.path.open("ab")
        return self

    def append(self, answer: Answer) -> None:
        """Store one answer; it survives the death of this process as soon as this returns. Raises StoreError."""
        with disk_errors(self.path):
            self._stream.write(answer.model_dump_json(exclude_defaults=True).encode() + b"\n")
            self._stream.flush()
        self.done.add(answer.id)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with disk_errors(self.path):
            self._stream.close()


def _mend(path: Path) -> list[Answer]:
    """The whole answers of a log; what stands behind the last whole line is cut off."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with disk_errors(path), path.open("r+b") as stream:
            stream.truncate(whole)
    return _parse(data[:whole], path)


def _parse(data: bytes, path: Path) -> list[Answer]:
    try:
        return [Answer.model_validate_json(line) for line in data.splitlines()]
    except ValidationError as error:
        raise ArtefactError(f"{path} holds a line that is no answer", advice=f"delete {path.parent}") from error


def read_answers(folder: Path) -> list[Answer]:
    """Every answer of a finished object, in the order in which they came. Raises ArtefactError."""
    path = folder / FILE
    try:
        return _parse(path.read_bytes(), path)
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror}", advice=f"delete {path.parent}") from error


def count_by_status(answers: Iterable[Answer]) -> dict[str, int]:
    """How many answers ended in which status."""
    counts: dict[str, int] = {}
    for answer in answers:
        counts[answer.status] = counts.get(answer.status, 0) + 1
    return counts
