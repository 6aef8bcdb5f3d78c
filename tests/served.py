"""One of Python's own servers, for as long as a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from threading import Thread


@contextmanager
def served(server: BaseServer) -> Iterator[None]:
    """It answers, in a thread; with the context all of it ends."""
    with server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
