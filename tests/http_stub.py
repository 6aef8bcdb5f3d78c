"""A small HTTP/1.1 server for tests: keep-alive, one coroutine per request, whatever the test wants it to answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    ordinal: int
    """How many requests came before."""


Answerer = Callable[[Request], Awaitable[tuple[int, Any]]]
"""Returns status and JSON value (or a str, sent as it is); raising ConnectionError drops the connection."""


@dataclass
class HttpStub:
    """Serves in a thread between enter and exit. `seen` holds the requests, `most_in_flight` the peak."""

    answer: Answerer
    listening: socket.socket | None = None
    """The socket to serve on; default: a free port of this machine."""
    seen: list[Request] = field(default_factory=list)
    most_in_flight: int = 0
    num_connections: int = 0
    _in_flight: int = 0

    def __enter__(self) -> Self:
        self._socket = self.listening or socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it as a kill would: open connections are reset, the port is closed."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        # asyncio's own server loses a socket that it accepts in the turn in which it is closed (Python 3.11)
        self._open: dict[socket.socket, asyncio.Task[None]] = {}
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._accept)
        await self._stopped.wait()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        while self._open:
            for task in self._open.values():
                task.cancel()
            await asyncio.sleep(0)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                taken, _ = self._socket.accept()
                self.num_connections += 1
                self._open[taken] = asyncio.create_task(self._connection(taken))
                self._open[taken].add_done_callback(partial(self._forget, taken))

    def _forget(self, taken: socket.socket, ended: asyncio.Task[None]) -> None:
        del self._open[taken]
        taken.close()

    async def _connection(self, taken: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=taken)
        try:
            while True:
                await self._exchange(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        request = Request(method, path, headers, json.loads(raw) if raw else None, len(self.seen))
        self.seen.append(request)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            status, value = await self.answer(request)
        finally:
            self._in_flight -= 1
        payload = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(payload)}\r\n\r\n".encode() + payload)
        await writer.drain()
