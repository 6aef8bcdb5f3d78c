"""Child processes: the only place that spawns. A command in, a finished run or a watched child out.

Every child leads a session of its own, so stopping it stops all that it started, and so does the parent's end, however
it comes. Output goes to a log file; nothing is parsed from it but the tail that an error shows. The environment is
never printed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import psutil

from qgate.errors import Interrupted, WorldError
from qgate.io.files import read_object

TAIL_BYTES = 4000
GRACE_S = 10.0
LEFT_S = 2.0
"""Time that what left the group has to follow the child of itself."""
GUARD = 'exec 3<&0; (read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 & exec "$@" 3<&- </dev/null'
"""Becomes the child, and leaves a guard in its group that ends it when the pipe closes: also a parent that is killed
with -9 leaves no server behind that would hold the GPU."""


class ProcessError(WorldError):
    """A child failed. Carries argv, exit code, log path and the log's tail."""

    def __init__(self, what: str, *, argv: Sequence[str], returncode: int | None, log: Path, advice: str | None = None):
        self.argv = tuple(argv)
        self.returncode = returncode
        self.log = log
        self.tail = tail(log)
        ended = "did not end" if returncode is None else _ending(returncode)
        super().__init__(f"{what} {ended}{shown(log, self.tail)}", advice=advice)


def _ending(returncode: int) -> str:
    if returncode < 0:
        named = {each.value: each.name for each in signal.Signals}
        name = named.get(-returncode, f"signal {-returncode}")
        hint = " (killed: often the kernel, for want of memory)" if name == "SIGKILL" else ""
        return f"was ended by {name}{hint}"
    return f"exited with {returncode}"


def shown(log: Path, text: str) -> str:
    """A log's place and lines of it, for the end of a message."""
    lines = "\n".join(f"  | {line}" for line in text.splitlines())
    return f"\n  log: {log}\n{lines}"


def tail(log: Path, num_lines: int = 15) -> str:
    """The last lines of a log file, or a note that there is none."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - TAIL_BYTES))
            text = stream.read().decode(errors="replace")
    except OSError:
        return "(no log)"
    return "\n".join(text.splitlines()[-num_lines:])


class _Family:
    """The children alive in this process, so that an interrupt can stop them from any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.alive: set[Child] = set()
        self.closed = False

    def add(self, child: Child) -> None:
        self.alive.add(child)

    def remove(self, child: Child) -> None:
        with self.lock:
            self.alive.discard(child)


_FAMILY = _Family()


def stop_all() -> None:
    """Stop every child and start no more until `stopped`: what an interrupt does when threads are waiting on them."""
    with _FAMILY.lock:
        _FAMILY.closed = True
        children = list(_FAMILY.alive)
    for child in children:
        child.stop()


def stopping() -> bool:
    """Whether `stop_all` has been called: a child that ended was not at fault."""
    return _FAMILY.closed


def stopped() -> None:
    """Every thread that could start a child is gone: children may be started again."""
    _FAMILY.closed = False


class Child:
    """A running child and all that it starts. Leaving the context stops the whole group."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        drop: Collection[str] = (),
        cwd: Path | None = None,
    ):
        """Start `argv` with the parent's environment without `drop`, plus `env`; output is appended to `log`."""
        self.argv = tuple(str(word) for word in argv)
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with _FAMILY.lock, log.open("ab") as stream:
            if _FAMILY.closed:
                raise Interrupted("interrupted before a child was started")
            self._popen = subprocess.Popen(
                ("/bin/sh", "-c", GUARD, "sh", *self.argv),
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env={name: value for name, value in os.environ.items() if name not in drop} | dict(env or {}),
                cwd=cwd,
                start_new_session=True,
            )
            _FAMILY.add(self)

    @property
    def pid(self) -> int:
        """Process id, which is also the group's."""
        return self._popen.pid

    def poll(self) -> int | None:
        """Exit code, or None while it runs."""
        return self._popen.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Exit code, or None when it still runs after `timeout_s`."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """SIGTERM to the whole group, SIGKILL after a grace period; also what left the group but descends from it."""
        family = _descendants(self.pid)
        self._signal(signal.SIGTERM)
        self.wait(GRACE_S)
        self._signal(signal.SIGKILL)
        deadline = time.monotonic() + LEFT_S
        while (alive := [each for each in family if _runs(each)]) and time.monotonic() < deadline:
            time.sleep(0.01)
        for process in alive:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._popen.wait()
        if self._popen.stdin is not None:
            self._popen.stdin.close()
        _FAMILY.remove(self)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _runs(process: psutil.Process) -> bool:
    """A process that ended stays a zombie until its parent, often a busy init, asks for its code: that is not awaited."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def run(
    argv: Sequence[str],
    *,
    log: Path,
    what: str,
    timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
    on_wait: Callable[[], None] = lambda: None,
) -> None:
    """Run `argv` to its end, output to `log`. Raises ProcessError on a non-zero exit or after `timeout_s`.

    `on_wait` is called twice a second meanwhile.
    """
    with Child(argv, log=log, env=env) as child:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while (code := child.wait(0.5)) is None:
            on_wait()
            if deadline is not None and time.monotonic() > deadline:
                raise ProcessError(
                    f"{what} took longer than {timeout_s:.0f} s and", argv=argv, returncode=None, log=log
                )
    if code != 0:
        raise ProcessError(what, argv=argv, returncode=code, log=log)


def run_worker(
    python: Path,
    worker: Path,
    request: Mapping[str, Any],
    *,
    work: Path,
    what: str,
    on_wait: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Run `python worker request.json result.json` in `work` and return the result. Raises ProcessError.

    A worker that can say what went wrong writes {"error": ..., "advice": ...} and exits non-zero: that is the message.
    """
    work.mkdir(parents=True, exist_ok=True)
    request_file, result_file, log = work / "request.json", work / "result.json", work / "worker.log"
    result_file.unlink(missing_ok=True)
    request_file.write_text(json.dumps(request, indent=1, default=str), encoding="utf-8")
    argv = [str(python), str(worker), str(request_file), str(result_file)]
    try:
        run(argv, log=log, what=what, on_wait=on_wait)
    except ProcessError as error:
        said = read_object(result_file)
        if "error" in said:
            raise WorldError(f"{what}: {said['error']}\n  log: {log}", advice=said.get("advice")) from error
        raise
    result = read_object(result_file)
    if not result:
        raise ProcessError(f"{what} wrote no result and", argv=argv, returncode=0, log=log)
    return result


def output(argv: Sequence[str], *, timeout_s: float = 30.0) -> str | None:
    """What a short command prints, or None where it is missing, fails or hangs (for probing, e.g. nvidia-smi)."""
    try:
        done = subprocess.run(list(argv), capture_output=True, timeout=timeout_s, check=True, text=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
