"""Answers on disk as they arrive: JSON lines, of which at most the last can be torn. Touches the disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from qgate.errors import ArtefactError
from qgate.io.files import disk_errors
from qgate.schemas.answers import Answer

FILE = "answers.jsonl"


class AnswerLog:
    """Appends answers to `folder/answers.jsonl`. Entering it drops a torn last line."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def __enter__(self) -> Self:
        with disk_errors(self.path):
            self._stream = self.path.open("ab")
            self._stream.truncate(sum(map(len, _whole_lines(self.path))))
        return self

    def append(self, answer: Answer) -> None:
        """Store one answer; it survives the death of this process as soon as this returns. Raises StoreError."""
        with disk_errors(self.path):
            self._stream.write(answer.model_dump_json(exclude_defaults=True).encode() + b"\n")
            self._stream.flush()

    def __exit__(self, *_: object) -> None:
        with disk_errors(self.path):
            self._stream.close()


def num_whole(folder: Path) -> int:
    """How many answers a log holds by now. It is left as it is, for another run may be writing it."""
    return sum(1 for _ in _whole_lines(folder / FILE))


def whole_answers(folder: Path) -> Iterator[Answer]:
    """Every answer that a log holds by now, in the order in which they came. Raises ArtefactError."""
    path = folder / FILE
    return (_parse(line, path) for line in _whole_lines(path))


def read_answers(folder: Path) -> list[Answer]:
    """Every answer of a finished object, in the order in which they came. Raises ArtefactError."""
    path = folder / FILE
    try:
        with path.open("rb") as stream:
            return [_parse(line, path) for line in stream]
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror}", advice=f"delete {path.parent}") from error


def _whole_lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with path.open("rb") as stream:
            yield from (line for line in stream if line.endswith(b"\n"))


def _parse(line: bytes, path: Path) -> Answer:
    try:
        return Answer.model_validate_json(line)
    except ValidationError as error:
        raise ArtefactError(f"{path} holds a line that is no answer", advice=f"delete {path.parent}") from error


def count_by_status(answers: Iterable[Answer]) -> dict[str, int]:
    """How many answers ended in which status."""
    return dict(Counter(answer.status for answer in answers))
