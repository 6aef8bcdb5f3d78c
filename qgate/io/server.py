"""A server child: how to launch it in, a server that has answered a real request out. Spawns, opens sockets.

Health is not readiness (a server may answer /health and die at its first completion), so a launch carries a probe of its
own. Ports are leased: no two servers of any qgate on this machine get the same, and none is taken from the range that
the kernel gives to outgoing connections. Leaving the context stops the server and all that it started.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from qgate.errors import DiedError, EngineError, StartError
from qgate.io.calls import Watch
from qgate.io.proc import Child, ProcessError, shown, tail

HOST = "127.0.0.1"
PORTS = range(21_000, 31_000)
"""Below Linux's and above most services' ports."""
POLL_S = 0.25
START_TRIES = 3


@dataclass(frozen=True)
class Cause:
    """Why a server failed, as read from its log: one line, and the fix."""

    summary: str
    advice: str
    port_taken: bool = False


@dataclass(frozen=True)
class Launch:
    """How to start a server and how to know that it is ready."""

    name: str
    """For messages, e.g. `the server of awq`."""
    argv: Callable[[int], Sequence[str]]
    """The command, given the port."""
    log: Path
    probe: Callable[[Server], str | None]
    """Asked again and again: None when ready, else why not yet. May raise StartError, where waiting is of no use."""
    diagnose: Callable[[str], Cause | None]
    """The cause of a failure, from what the server has logged."""
    start_timeout_s: float
    env: Mapping[str, str]
    drop: Collection[str] = ()
    """Variables of the parent's environment that the server does not get."""
    port: int | None = None
    """A port that must be this one; None: a free one."""


class Server:
    """A running server."""

    def __init__(self, launch: Launch, child: Child, port: int, log_start: int):
        self.launch = launch
        self.port = port
        self.base_url = f"http://{HOST}:{port}"
        self.start_s = 0.0
        self._child = child
        self._log_start = log_start

    @property
    def pid(self) -> int:
        """Process id of the server, which is also its group's."""
        return self._child.pid

    @property
    def argv(self) -> tuple[str, ...]:
        """The command that it was started with."""
        return self._child.argv

    def logged(self) -> str:
        """All that this server has logged so far."""
        with contextlib.suppress(OSError), self.launch.log.open("rb") as stream:
            stream.seek(self._log_start)
            return stream.read().decode(errors="replace")
        return ""

    def how_ended(self) -> str | None:
        """None while it runs; else how it ended, why as far as the log tells, and the log's tail."""
        if (code := self._child.poll()) is None:
            return None
        return _ending(self.launch, self._child, code, self.cause())

    def cause(self) -> str:
        """`: cause (fix)` of what goes wrong with it, as far as its log tells; else nothing."""
        found = self.launch.diagnose(self.logged())
        return f": {found.summary} ({found.advice})" if found else ""

    def log_tail(self) -> str:
        """The log's place and tail, for the end of a message."""
        return shown(self.launch.log, tail(self.launch.log))

    def watch(self, stall_timeout_s: float) -> Watch:
        """How a client learns of this server's death."""
        return Watch(
            self.launch.name, stall_timeout_s, how_ended=self.how_ended, cause=self.cause, log_tail=self.log_tail
        )


@contextlib.contextmanager
def serve(launch: Launch) -> Iterator[Server]:
    """Start a server and yield it when it is ready. Raises StartError with the cause, the fix and the log's tail."""
    for left in reversed(range(START_TRIES)):
        with _lease(launch) as port:
            log_start = launch.log.stat().st_size if launch.log.exists() else 0
            with Child(launch.argv(port), log=launch.log, env=launch.env, drop=launch.drop) as child:
                server = Server(launch, child, port, log_start)
                try:
                    _wait(server, child)
                except _PortTakenError as taken:
                    if launch.port is None and left:
                        continue
                    raise StartError(taken.message, advice=taken.advice) from None
                yield server
                return


class _PortTakenError(StartError):
    """Somebody else took the port between the lease and the server's own bind."""


def _wait(server: Server, child: Child) -> None:
    began = time.monotonic()
    launch = server.launch
    why = "it has not been asked yet"
    while time.monotonic() - began < launch.start_timeout_s:
        if (code := child.poll()) is not None:
            raise _start_error(launch, child, code, server.logged())
        try:
            answer = launch.probe(server)
        except DiedError:
            continue
        except EngineError as error:
            raise StartError(f"{error.message}{server.log_tail()}", advice=error.advice) from error
        if answer is None:
            server.start_s = time.monotonic() - began
            return
        why = answer
        child.wait(POLL_S)
    raise StartError(
        f"{launch.name} was not ready after {launch.start_timeout_s:g} s: {why}{server.log_tail()}",
        advice="look at the log; if the model is only large, raise the engine's option start_timeout_s",
    )


def _start_error(launch: Launch, child: Child, code: int, logged: str) -> StartError:
    cause = launch.diagnose(logged)
    kind = _PortTakenError if cause is not None and cause.port_taken else StartError
    advice = cause.advice if cause else "look at the log: the first error in it is most often the cause"
    why = f": {cause.summary}" if cause else ""
    return kind(_ending(launch, child, code, why, "did not start: it "), advice=advice)


def _ending(launch: Launch, child: Child, code: int, why: str, how: str = "") -> str:
    ended = ProcessError(f"{launch.name} {how}".rstrip(), argv=child.argv, returncode=code, log=launch.log).message
    first, _, rest = ended.partition("\n")
    return f"{first}{why}\n{rest}"


@contextlib.contextmanager
def _lease(launch: Launch) -> Iterator[int]:
    """A port that no other qgate uses while the context lasts, and that nobody listened on when it began."""
    folder = Path(tempfile.gettempdir()) / f"qgate-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    wanted = PORTS if launch.port is None else (launch.port,)
    start = os.getpid() % len(wanted)
    for port in (*wanted[start:], *wanted[:start]):
        lock = FileLock(folder / f"{port}.lock", thread_local=False)  # a session may be left in another thread
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        try:
            if _is_free(port):
                yield port
                return
        finally:
            lock.release()
    if launch.port is not None:
        raise StartError(
            f"{launch.name} did not start: port {launch.port} is taken",
            advice="stop what listens there, or leave the engine's option `port` out: a free one is found",
        )
    raise StartError(f"{launch.name} did not start: no free port in {PORTS.start}-{PORTS.stop}")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
