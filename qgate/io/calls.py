"""Calls to a server, replies from it, and where and how it is reached. Data only; touches nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

MAX_ERROR_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Call:
    """One POST: `body` to `path`. `cost` counts against the budget of `Client.run`, in its unit.

    `then` makes the next call out of an ok reply's body, or None; the reply to the last of the chain is delivered. Where
    it raises EngineError, the reply is no longer ok and says why.
    """

    id: str
    path: str
    body: dict[str, Any]
    cost: int = 0
    then: Callable[[dict[str, Any]], Call | None] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """How a call ended. `body` where status is ok, else `error` says why."""

    id: str
    status: Literal["ok", "timeout", "error"]
    body: dict[str, Any] | None
    error: str | None
    latency_s: float
    attempt: int
    http_status: int | None = None


@dataclass(frozen=True)
class Watch:
    """How a client learns that its server is dead or hung."""

    name: str
    """The server, for messages."""
    stall_timeout_s: float
    how_ended: Callable[[], str | None] = lambda: None
    """None while the process runs, else how it ended, with its log's tail."""
    health_path: str | None = None
    """Asked after a 5xx: unless it answers 200, the server is dying and the 5xx is no answer."""
    pulse_path: str | None = None
    pulse: Callable[[str], float] = lambda body: 0.0
    """Work done so far, from the body at `pulse_path`: while it grows, a server that answers nothing is not hung."""
    cause: Callable[[], str] = lambda: ""
    """Why it is dying, as far as its log tells: `: cause (fix)`, or nothing."""
    log_tail: Callable[[], str] = lambda: ""
    """Appended to what is said of a dying or hung server."""


@dataclass(frozen=True)
class Target:
    """Where the server is, and how it may be used."""

    base_url: str
    concurrency: int
    request_timeout_s: float
    watch: Watch
    key: str | None = field(default=None, repr=False)
    trust_env: bool = False
    """Whether proxies named in the environment are used: never for a server on this machine."""

    def headers(self) -> dict[str, str]:
        """Headers of every call."""
        bearer = {"authorization": f"Bearer {self.key}"} if self.key else {}
        return {"content-type": "application/json", **bearer}

    def redact(self, text: str) -> str:
        """`text` without the key, and cut to what a person reads."""
        return (text.replace(self.key, "***") if self.key else text)[:MAX_ERROR_CHARS]
