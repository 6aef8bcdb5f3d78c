"""The asynchronous side of a client's run: workers that call, and a watch that ends them all. Opens sockets.

Only transport errors are tried again, with back-off. A call that takes too long, or that the server refuses, is a reply
that says so; what ends a flight is the server's death, a silence longer than the watchdog allows, or an interrupt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import aiohttp
import orjson

from qgate.errors import DiedError, EngineError, HungError, Interrupted
from qgate.io import http, proc
from qgate.io.calls import Call, Reply, Target

MAX_ATTEMPTS = 4
BACKOFF_S = 0.25
PROBE_TIMEOUT_S = 5.0
GO_ON = "run the same command again: it goes on after the answers that were kept"
LIVENESS_S = 0.25
"""How often the watch looks whether the server's process still runs and the run goes on."""
START_GROUP, START_PAUSE_S = 16, 0.01
"""Workers start so many at a time. A server that is asked hundreds of things at once reads them all by turns, and its
engine has nothing to do until it is through."""


class Flight:
    """The asynchronous side of a run: workers that call, and a watch that ends them all."""

    def __init__(
        self, target: Target, calls: Iterator[Call], budget: int | None, deliver: Callable[[Reply], None]
    ) -> None:
        self._target = target
        self._watch = target.watch
        self._calls = calls
        self._budget = budget
        self._deliver = deliver
        self._spent = 0
        self._in_flight = 0
        self._freed = asyncio.Condition()
        self._all_taken = asyncio.Event()
        self._progress_at = time.monotonic()
        self._pulse = -1.0
        self._pulse_of = -1.0

    async def fly(self) -> None:
        """Run all calls. Raises DiedError, HungError, Interrupted or what the calls raise."""
        try:
            async with http.Session(self._target) as session, asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch_over(session))
                workers = [group.create_task(self._work(session)) async for _ in self._starts()]
                await asyncio.gather(*workers)
                watch.cancel()
        except BaseExceptionGroup as several:
            raise _most_telling(several) from None

    async def _starts(self) -> AsyncIterator[int]:
        """One for each worker, when it may start; no more once every call is taken."""
        for number in range(self._target.concurrency):
            if number and number % START_GROUP == 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(START_PAUSE_S):
                        await self._all_taken.wait()
                    return
            yield number

    async def _work(self, session: http.Session) -> None:
        for call in self._calls:
            self._deliver(await self._chain(session, call))
        self._all_taken.set()

    async def _chain(self, session: http.Session, call: Call) -> Reply:
        while True:
            await self._take(call.cost)
            try:
                reply = await self._answered(session, call)
            finally:
                await self._give(call.cost)
            self._progress_at = time.monotonic()
            try:
                further = None if call.then is None or reply.body is None else call.then(reply.body)
            except EngineError as error:
                return replace(reply, status="error", body=None, error=error.message)
            if further is None:
                return reply
            call = further

    async def _take(self, cost: int) -> None:
        async with self._freed:
            while self._budget is not None and self._in_flight and self._spent + cost > self._budget:
                await self._freed.wait()
            if not self._in_flight:
                self._progress_at = time.monotonic()
            self._in_flight += 1
            self._spent += cost

    async def _give(self, cost: int) -> None:
        async with self._freed:
            self._in_flight -= 1
            self._spent -= cost
            self._freed.notify_all()

    async def _answered(self, session: http.Session, call: Call) -> Reply:
        for attempt in range(1, MAX_ATTEMPTS + 1):
            began = time.monotonic()
            try:
                async with asyncio.timeout(self._target.request_timeout_s):
                    status, said = await session.ask("POST", call.path, call.body)
            except aiohttp.ClientError as error:
                await self._end_if_dead(error, last=attempt == MAX_ATTEMPTS)
                if attempt == MAX_ATTEMPTS:
                    return Reply(call.id, "error", None, http.describe(error), time.monotonic() - began, attempt)
                await asyncio.sleep(BACKOFF_S * 2 ** (attempt - 1))
                continue
            except TimeoutError:
                limit = f"no answer within {self._target.request_timeout_s:g} s"
                return Reply(call.id, "timeout", None, limit, time.monotonic() - began, attempt)
            if status >= 500:
                await self._end_if_unhealthy(session, status, said)
            return self._reply(call.id, status, said, (time.monotonic() - began, attempt))
        raise AssertionError("the last attempt returns")

    def _reply(self, call_id: str, status: int, said: bytes, timing: tuple[float, int]) -> Reply:
        if status >= 400:
            why = f"HTTP {status}: {self._target.redact(_server_message(said))}"
            return Reply(call_id, "error", None, why, *timing, status)
        try:
            body = orjson.loads(said)
        except orjson.JSONDecodeError as error:
            why = f"the answer is no JSON ({error}): {self._target.redact(_text(said)[:200])}"
            return Reply(call_id, "error", None, why, *timing, status)
        if isinstance(body, dict) and body.get("error") and not body.get("choices"):
            why = f"an error with HTTP {status}: {self._target.redact(_server_message(said))}"
            return Reply(call_id, "error", None, why, *timing, status)
        return Reply(call_id, "ok", body, None, *timing, status)

    async def _end_if_dead(self, error: aiohttp.ClientError, *, last: bool) -> None:
        """Raise DiedError where the process has ended, or where nobody listens any more after the last attempt."""
        await asyncio.sleep(0.05)  # a killed server's sockets close a moment before its exit can be seen
        if ended := self._watch.how_ended():
            raise DiedError(ended, advice=GO_ON)
        if last and isinstance(error, aiohttp.ClientConnectorError):
            raise DiedError(
                f"{self._watch.name} is gone: {self._target.base_url}: {http.describe(error)}{self._watch.log_tail()}",
                advice=GO_ON,
            )

    async def _end_if_unhealthy(self, session: http.Session, status: int, failed: bytes) -> None:
        """A 5xx of a server whose engine has died is no answer: raise DiedError."""
        if self._watch.health_path is None:
            return
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                health, _ = await session.ask("GET", self._watch.health_path)
        except (aiohttp.ClientError, TimeoutError) as error:
            said = http.describe(error)
        else:
            if health < 400:
                return
            said = f"HTTP {health}"
        raise DiedError(
            f"{self._watch.name} is dying: after HTTP {status} "
            f"({self._target.redact(_server_message(failed))[:300]}) its health is {said}{self._watch.cause()}"
            f"{self._watch.log_tail()}",
            advice=GO_ON,
        )

    async def _watch_over(self, session: http.Session) -> None:
        patience_s = self._watch.stall_timeout_s
        while True:
            await asyncio.sleep(min(LIVENESS_S, patience_s / 4))
            if proc.stopping():
                raise Interrupted(f"interrupted while {self._watch.name} was asked")
            if ended := self._watch.how_ended():
                raise DiedError(ended, advice=GO_ON)
            idle_s = time.monotonic() - self._progress_at
            if not self._in_flight or idle_s < patience_s / 2:
                continue
            if self._pulse_of != self._progress_at:  # once per silence, half-way: what the pulse must grow from
                self._pulse_of = self._progress_at
                self._pulse = await self._read_pulse(session)
            elif idle_s > patience_s:
                await self._end_if_hung(session, idle_s)

    async def _end_if_hung(self, session: http.Session, idle_s: float) -> None:
        since = self._progress_at
        pulse = await self._read_pulse(session)
        if self._progress_at != since:
            return
        if pulse > self._pulse:
            self._progress_at = time.monotonic()
            return
        raise HungError(
            f"{self._watch.name} finished nothing for {idle_s:.0f} s with {self._in_flight} requests in flight"
            f"{self._watch.log_tail()}",
            advice="look at the log; if the server is only slow, raise engine.stall_timeout_s",
        )

    async def _read_pulse(self, session: http.Session) -> float:
        """Work done so far; -1 where the server does not tell."""
        if self._watch.pulse_path is None:
            return -1.0
        try:
            async with asyncio.timeout(min(PROBE_TIMEOUT_S, self._watch.stall_timeout_s / 2)):
                _, said = await session.ask("GET", self._watch.pulse_path)
        except (aiohttp.ClientError, TimeoutError):
            return -1.0
        return self._watch.pulse(_text(said))


def _most_telling(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """Of errors that came together, the one to show: qgate's own before others."""
    leaves = [
        leaf for error in several.exceptions
        for leaf in ([_most_telling(error)] if isinstance(error, BaseExceptionGroup) else [error])
    ]  # fmt: skip
    return next((leaf for leaf in leaves if isinstance(leaf, EngineError)), leaves[0])


def _text(said: bytes) -> str:
    return said.decode("utf-8", errors="replace")


def _server_message(said: bytes) -> str:
    """The message inside an OpenAI-style error body, or the body."""
    try:
        body = orjson.loads(said)
    except orjson.JSONDecodeError:
        return _text(said)
    error = body.get("error", body) if isinstance(body, dict) else body
    found = error.get("message", error) if isinstance(error, dict) else error
    return str(found)
