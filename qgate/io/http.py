"""A target → an HTTP session with it, and a body → what is sent. Opens sockets once a request is made.

What a session does by itself is bounded here: no redirect is followed by its users, no cookie kept, no .netrc read, and a
proxy of the environment is used only where the target says so.
"""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson

from qgate.io.calls import Target

CONNECT_TIMEOUT_S = 5.0
KEPT_IDLE_S = 4.0
"""A connection that idles longer is not used again: uvicorn, vLLM's server, closes it after 5 s."""
LARGE_BODY = 1 << 20
"""Bytes from which aiohttp wants a body as a file."""


def session(target: Target) -> aiohttp.ClientSession:
    """A session that holds as many connections as are asked for, and waits without end for an answer."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_IDLE_S),
        headers=target.headers(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=_proxy(target),
    )


def body(content: dict[str, Any]) -> bytes | io.BytesIO:
    """JSON, as aiohttp takes it."""
    written = orjson.dumps(content)
    return written if len(written) < LARGE_BODY else io.BytesIO(written)


def describe(error: Exception) -> str:
    """An exception in one line, its type first."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _proxy(target: Target) -> str | None:
    """The environment's proxy for a target; None where there is none or it is not to be used."""
    url, named = urlsplit(target.base_url), getproxies()
    if not target.trust_env or proxy_bypass(url.hostname or ""):
        return None
    return named.get(url.scheme) or named.get("all")
