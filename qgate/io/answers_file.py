"""Answers of any origin: a JSON-lines stream in, what the detectors are shown of each answer out. Reads a file.

Each line is one of: a plain answer ({"id", "text", "prompt", "finish_reason", ...}), an answer that qgate stored, an OpenAI
response (chat.completion, text_completion, response), or a line of an OpenAI batch output.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from qgate.errors import UserError
from qgate.io.answers_shapes import ShapeError, answers_of
from qgate.judge.defects import Seen

STDIN = "-"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """One answer of a file."""

    id: str
    seen: Seen


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line from which no answer could be read, and why."""

    number: int
    reason: str


def read(file: str) -> Iterator[FoundAnswer | BadLine]:
    """The answers of a file, or of standard input where it is `-`. Raises UserError where it holds none."""
    with _open(file) as stream:
        yield from read_stream(stream, "standard input" if file == STDIN else file)


def read_stream(stream: BinaryIO, name: str) -> Iterator[FoundAnswer | BadLine]:
    """The answers of a stream called `name`, as they come. Raises UserError at its end where there was none."""
    num_answers = 0
    first_bad: BadLine | None = None
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            found = [FoundAnswer(key or f"line {number}", seen) for key, seen in answers_of(_record(line, number))]
        except ShapeError as error:
            bad = BadLine(number, str(error))
            first_bad = first_bad or bad
            yield bad
            continue
        num_answers += len(found)
        yield from found
    if not num_answers:
        raise _nothing(name, first_bad)


def _record(line: bytes, number: int) -> dict[str, Any]:
    if number == 1 and line.startswith(_UTF16):
        raise ShapeError("is UTF-16, not UTF-8: convert the file first (iconv -f UTF-16 -t UTF-8)")
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ShapeError(f"is not UTF-8: byte 0x{line[error.start]:02x} at position {error.start}") from error
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ShapeError(f"is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise ShapeError(f"holds a {type(record).__name__}, not an object")
    return record


@contextlib.contextmanager
def _open(file: str) -> Iterator[BinaryIO]:
    if file == STDIN:
        yield sys.stdin.buffer
        return
    try:
        stream = Path(file).open("rb")  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from error
    with stream:
        yield stream


def _nothing(name: str, first_bad: BadLine | None) -> UserError:
    if first_bad is None:
        return UserError(f"{name} holds no answers", advice="write one JSON object a line")
    return UserError(
        f"no line of {name} holds an answer; line {first_bad.number} {first_bad.reason}",
        advice='write one JSON object a line, e.g. {"id": "1", "text": "...", "prompt": "...", "finish_reason": "stop"}',
    )
