"""An HTTP client for OpenAI-compatible servers: calls in, replies out as they finish. Opens sockets, starts one thread.

Concurrency is bounded. The event loop lives in a thread of its own, so a caller that is busy storing one reply delays
no other. The key is sent, never stored, shown or logged. How a call is made, tried again and given up is
`qgate.io.flight`.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import aiohttp

from qgate.errors import EngineError
from qgate.io import http
from qgate.io.calls import Call, Reply, Target
from qgate.io.flight import PROBE_TIMEOUT_S, Flight


class Client:
    """A client of one server. Holds no connection: `run` opens what it needs and closes it."""

    def __init__(self, target: Target):
        self._target = target

    def get(self, path: str, *, timeout_s: float = PROBE_TIMEOUT_S) -> tuple[int, str]:
        """Status and body of a GET. Raises EngineError when no answer comes."""
        return self._once("GET", path, None, timeout_s)

    def post(self, path: str, body: dict[str, Any], *, timeout_s: float) -> tuple[int, str]:
        """Status and body of a POST. Raises EngineError when no answer comes."""
        return self._once("POST", path, body, timeout_s)

    def run(self, calls: Iterable[Call], *, budget: int | None = None) -> Iterator[Reply]:
        """One reply per call, as they finish. `calls` is read lazily, in the client's thread.

        At most `concurrency` calls are in flight, and at most `budget` of cost, but always one. Raises DiedError,
        HungError, Interrupted, and whatever `calls` raises; replies that came before are yielded first.
        """
        with _Run(self._target, calls, budget) as replies:
            yield from replies

    def _once(self, method: str, path: str, body: dict[str, Any] | None, timeout_s: float) -> tuple[int, str]:
        async def exchange() -> tuple[int, bytes]:
            async with http.Session(self._target) as session, asyncio.timeout(timeout_s):
                return await session.ask(method, path, body)

        try:
            status, answer = asyncio.run(exchange())
        except (aiohttp.ClientError, TimeoutError) as error:
            url = f"{self._target.base_url}{path}"
            raise EngineError(f"{self._target.watch.name}: no answer from {url}: {http.describe(error)}") from error
        said = answer.decode("utf-8", errors="replace")
        return status, self._target.redact(said) if status >= 400 else said


class _Run:
    """One run of a client: the thread with the event loop, and the queue that it fills. Iterating yields replies."""

    def __init__(self, target: Target, calls: Iterable[Call], budget: int | None):
        self._target = target
        self._calls = iter(calls)
        self._budget = budget
        self._replies: queue.SimpleQueue[Reply | BaseException | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._main, name=f"client of {target.watch.name}", daemon=True)
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __iter__(self) -> Iterator[Reply]:
        while (reply := self._replies.get()) is not None:
            if isinstance(reply, BaseException):
                raise reply
            yield reply

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(Flight(self._target, self._calls, self._budget, self._replies.put).fly())
        self._ready.set()
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self._replies.put(error)
        finally:
            self._loop.run_until_complete(_last_turns())
            self._loop.close()
            self._replies.put(None)


async def _last_turns() -> None:
    """Transports that were closed end on the loop's next turns."""
    for _ in range(3):
        await asyncio.sleep(0)
    await asyncio.get_running_loop().shutdown_asyncgens()
