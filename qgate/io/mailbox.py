"""Jobs for a long-running worker, in files: requests in, answers out as the worker appends them. Touches the disk.

The parent writes NNNN.request.jsonl whole. The worker appends a JSON line per finished request to NNNN.answers.jsonl,
touches NNNN.beat while it makes progress, and ends the job with NNNN.done or NNNN.error. NNNN.cancel, written by the
parent, ends a job that nobody reads any more. Before the first job the worker writes ready.json or failed.json.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from qgate.errors import DiedError, EngineError, HungError, StartError
from qgate.io.files import write_text
from qgate.io.proc import Child, ProcessError, tail

POLL_S = 0.02


class Mailbox:
    """The parent's side. The worker is `child`, the files lie in `folder`, `what` names the worker in messages."""

    def __init__(self, child: Child, folder: Path, *, what: str, stall_timeout_s: float) -> None:
        self._child, self._folder, self._what = child, folder, what
        self._stall_timeout_s = stall_timeout_s
        self._num_jobs = 0

    def wait_ready(self, timeout_s: float) -> dict[str, Any]:
        """What the worker says of itself once it can take jobs. Raises StartError."""
        deadline = time.monotonic() + timeout_s
        ready, failed = self._folder / "ready.json", self._folder / "failed.json"
        while not ready.exists():
            code = self._child.poll()
            if failed.exists():
                said = _read(failed)
                raise StartError(f"{self._what}: {said['error']}\n  log: {self._child.log}", advice=said.get("advice"))
            if code is not None:
                raise StartError(self._ended(code))
            if time.monotonic() > deadline:
                raise StartError(
                    f"{self._what} was not ready after {timeout_s:.0f} s\n  log: {self._child.log}",
                    advice="a larger model may need a longer `start_timeout_s` among the engine's options",
                )
            time.sleep(POLL_S)
        return _read(ready)

    def ask(self, kind: str, requests: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """One line per request, as the worker finishes them. Raises DiedError, HungError, EngineError.

        Closing the iterator early cancels the job.
        """
        self._num_jobs += 1
        job = self._folder / f"{self._num_jobs:04d}"
        lines = [{"kind": kind, "num_requests": len(requests)}, *requests]
        write_text(job.with_suffix(".request.jsonl"), "".join(f"{json.dumps(line)}\n" for line in lines))
        num_answers, finished = 0, False
        try:
            for line in self._tail(job):
                num_answers += 1
                yield line
            finished = True
        finally:
            if not finished:
                job.with_suffix(".cancel").touch()
        if num_answers != len(requests):
            raise EngineError(f"{self._what} gave {num_answers} answers to {len(requests)} requests")

    def _tail(self, job: Path) -> Iterator[dict[str, Any]]:
        answers, rest = job.with_suffix(".answers.jsonl"), b""
        position, last_progress, last_beat = 0, time.monotonic(), 0
        while True:
            code = self._child.poll()
            ended = job.with_suffix(".done").exists() or job.with_suffix(".error").exists() or code is not None
            fresh = _read_from(answers, position)
            position += len(fresh)
            *lines, rest = (rest + fresh).split(b"\n")
            yield from (json.loads(line) for line in lines)
            if ended:
                return self._check_end(job, code)
            beat = _mtime_ns(job.with_suffix(".beat"))
            if fresh or beat != last_beat:
                last_progress, last_beat = time.monotonic(), beat
            elif time.monotonic() - last_progress > self._stall_timeout_s:
                raise HungError(
                    f"{self._what} made no progress for {self._stall_timeout_s:.0f} s\n  log: {self._child.log}\n"
                    f"{tail(self._child.log)}",
                    advice="raise `stall_timeout_s` if the machine is merely slow; finished answers are kept",
                )
            if not fresh:
                time.sleep(POLL_S)

    def _check_end(self, job: Path, code: int | None) -> None:
        if job.with_suffix(".done").exists():
            return
        if job.with_suffix(".error").exists():
            said = _read(job.with_suffix(".error"))
            raise EngineError(f"{self._what}: {said['error']}\n  log: {self._child.log}", advice=said.get("advice"))
        raise DiedError(self._ended(code), advice="the same command goes on where it stopped")

    def _ended(self, code: int | None) -> str:
        return ProcessError(self._what, argv=self._child.argv, returncode=code, log=self._child.log).message


def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def _read_from(path: Path, position: int) -> bytes:
    try:
        with path.open("rb") as stream:
            stream.seek(position)
            return stream.read()
    except FileNotFoundError:
        return b""


def _mtime_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
