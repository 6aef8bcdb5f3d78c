"""A target → an HTTP session with it; a path and a body → status and bytes. Opens sockets once a request is made.

What a session does by itself is bounded here: no redirect is followed, no cookie kept, no .netrc read, and a proxy of the
environment is used only where the target says so. The key goes to the target alone: aiohttp shows a session's own headers
to proxies too, so it is a header of each request.
"""

from __future__ import annotations

import io
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson

from qgate.errors import EngineError
from qgate.io.calls import Target
from qgate.io.redact import redact

CONNECT_TIMEOUT_S = 5.0
KEPT_IDLE_S = 4.0
"""A connection that idles longer is not used again: uvicorn, vLLM's server, closes it after 5 s."""
LARGE_BODY = 1 << 20
"""Bytes from which aiohttp wants a body as a file."""


class Session:
    """Holds as many connections as are asked for, and waits without end for an answer. Raises EngineError: see _proxy."""

    def __init__(self, target: Target):
        self._base_url = target.base_url
        self._headers = target.headers()
        proxy = _proxy(target)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_IDLE_S),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=proxy,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def ask(self, method: str, path: str, content: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Status and body of the answer. Raises aiohttp.ClientError."""
        async with self._session.request(
            method, f"{self._base_url}{path}", data=_body(content), headers=self._headers, allow_redirects=False
        ) as response:
            return response.status, await response.read()


def describe(error: Exception) -> str:
    """An exception in one line, its type first, without the password of a proxy that it may name."""
    said, _ = redact(" ".join(str(error).split()))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _body(content: dict[str, Any] | None) -> bytes | io.BytesIO | None:
    """JSON, as aiohttp takes it."""
    if content is None:
        return None
    written = orjson.dumps(content)
    return written if len(written) < LARGE_BODY else io.BytesIO(written)


def _proxy(target: Target) -> str | None:
    """The environment's proxy for a target; None where there is none or it is not to be used.

    Raises EngineError where it speaks anything but HTTP.
    """
    url, named = urlsplit(target.base_url), getproxies()
    if not target.trust_env or proxy_bypass(url.hostname or "") or proxy_bypass(url.netloc):
        return None
    proxy = named.get(url.scheme) or named.get("all")
    if proxy is None or proxy.startswith(("http://", "https://")):
        return proxy
    scheme, is_address, _ = proxy.partition("://")
    if is_address:
        raise EngineError(
            f"{target.watch.name}: the environment names a {scheme} proxy, which is not spoken",
            advice="name one that speaks HTTP, or the server's host in no_proxy",
        )
    return f"http://{proxy}"
