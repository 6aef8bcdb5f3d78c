"""A pasted request and answer in; a request and what came back out. Touches nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from qgate.errors import IncidentError
from qgate.io.incident_curl import request_of
from qgate.io.redact import redact
from qgate.schemas.incident import Request

_MEANT_AS_BODY = re.compile(r"""\s*\{.*["'](?:messages|prompt)["']\s*:""", re.DOTALL)


@dataclass(frozen=True)
class Pasted:
    """What a text holds."""

    request: Request
    answer: str | dict[str, Any] | None
    num_secrets: int
    source: str
    """Where it was found."""


def from_pasted(request: str, answer: str | None) -> Pasted:
    """A request (a JSON body, the turns of a chat, or plain text that a user wrote) and an answer (a JSON response, or text).

    Raises IncidentError.
    """
    value = _json(request)
    if not request.strip():
        raise IncidentError("the request is empty", advice="give its JSON body, or the text that the user wrote")
    if value is None and _MEANT_AS_BODY.match(request):
        raise IncidentError(
            "the request looks like a JSON body, and is not JSON", advice="double quotes, no last comma"
        )
    if not isinstance(value, dict | list):
        value = {"messages": [{"role": "user", "content": request.strip()}]}
    elif isinstance(value, list):
        value = {"messages": value}
    elif isinstance(value.get("body"), dict):
        value = value["body"]
    body, num = redact(value)
    came, num_in_answer = redact(read_answer(answer))
    return Pasted(request_of(body), came, num + num_in_answer, "a pasted request")


def read_answer(text: str | None) -> Any:
    """A JSON response as such, any other text as it is; None for None."""
    if text is None:
        return None
    value = _json(text)
    return value if isinstance(value, dict) and ("choices" in value or "message" in value) else text.removesuffix("\n")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
