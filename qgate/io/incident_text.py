"""A vLLM log, or a pasted request and answer, in; a request and what came back out. Touches nothing.

vLLM logs requests since 0.26 as `Request ID JSON body: {…}` and `Request ID details: prompt: …, prompt_token_ids: […]`
(with --enable-log-requests at level DEBUG), before that as `Received request ID: prompt: …, params: SamplingParams(…)`
(vllm/entrypoints/…/request_logger.py). Token ids are taken before text: they say exactly what was read.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import Any

from qgate.errors import IncidentError
from qgate.io.incident_curl import request_of
from qgate.io.redact import redact
from qgate.schemas.incident import Request

_JSON_BODY = re.compile(r"Request (\S+) JSON body: (\{.*)")
_DETAILS = re.compile(r"(?:Request (\S+) details|Received request (\S+?)): prompt: ")
_RECEIVED = re.compile(r"Received request (\S+?):.*?SamplingParams\((.*)\)")
_IDS = re.compile(r"prompt_token_ids: (\[[\d, ]*\])")
_OUTPUT = re.compile(r"Generated response ([^\s:(]+)( \(streaming delta\))?[^:]*: output: ")
_FINISH = re.compile(r"finish_reason: (\w+)")
_NUMBERS = (
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "seed",
    "max_tokens", "min_tokens",
)  # fmt: skip
STREAMED = "streaming_complete"
"""What vLLM logs in place of the reason for which an answer that was streamed ended."""
_MEANT_AS_BODY = re.compile(r"""\s*\{.*["'](?:messages|prompt)["']\s*:""", re.DOTALL)
ADVICE = "serve with --enable-log-requests and VLLM_LOGGING_LEVEL=DEBUG, so that a log line holds the prompt"

WHOLE = "copy the lines whole, as vLLM wrote them, or give the request itself (--request)"


@dataclass(frozen=True)
class Pasted:
    """What a text holds."""

    request: Request
    answer: str | dict[str, Any] | None
    num_secrets: int
    source: str
    """Where it was found."""


def from_log(text: str) -> Pasted:
    """The first request that a vLLM log holds with its prompt, and its answer where it is logged. Raises IncidentError."""
    try:
        return _first_request(text)
    except (ValueError, SyntaxError, OverflowError, MemoryError, RecursionError) as error:
        raise IncidentError(f"a line of the log cannot be read: {error}", advice=WHOLE) from error


def _first_request(text: str) -> Pasted:
    lines = text.splitlines()
    if bodies := [found for line in lines if (found := _JSON_BODY.search(line))]:
        first, name = bodies[0], bodies[0][1]
        body, num = redact(_json_head(first[2]))
        return Pasted(request_of(body), _logged_answer(text, name), num, _which(name, len(bodies)))
    if prompts := [found for line in lines if (found := _DETAILS.search(line))]:
        first, name = prompts[0], prompts[0][1] or prompts[0][2]
        body, num = redact({**_prompt(first.string, first.end()), **_sampling(text, name)})
        return Pasted(request_of(body), _logged_answer(text, name), num, _which(name, len(prompts)))
    if _RECEIVED.search(text):
        raise IncidentError("the log names a request, but not its prompt", advice=ADVICE)
    raise IncidentError("the log holds no line of a request", advice=ADVICE)


def _which(name: str, num: int) -> str:
    """Which request it is, and whether there are others, of which another may be meant."""
    return f"a vLLM log, request {name}" + (f" (the first of {num})" if num > 1 else "")


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


def _json_head(text: str) -> Any:
    """The JSON object that a log line begins with. Raises IncidentError where the log cut it off."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError) as error:
        raise IncidentError("the log cut the request's body off", advice="serve without --max-log-len") from error


def _prompt(line: str, start: int) -> dict[str, Any]:
    """The prompt's ids, else its text, which has the chat template in it already."""
    if (ids := _IDS.search(line)) and ids[1] != "[]":
        return {"prompt": json.loads(ids[1])}
    text = _literal(line[start:])
    if not text:
        raise IncidentError("the log line has no prompt in it", advice=ADVICE)
    return {"prompt": text, "add_special_tokens": False}


def _literal(text: str) -> str | None:
    """The Python string that `text` begins with."""
    found = re.match(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", text, re.DOTALL)
    return str(ast.literal_eval(found[0])) if found else None


def _sampling(text: str, name: str) -> dict[str, Any]:
    found = next((match[2] for match in _RECEIVED.finditer(text) if match[1] == name), "")
    values: dict[str, Any] = {}
    for field in _NUMBERS:
        if match := re.search(rf"\b{field}=(-?[\d.]+(?:e-?\d+)?)", found):
            values[field] = float(match[1]) if field in _NUMBERS[:7] and field != "top_k" else int(float(match[1]))
    if values.get("top_k") == 0:
        values["top_k"] = -1
    if "ignore_eos=True" in found:
        values["ignore_eos"] = True
    if (ids := re.search(r"\bstop_token_ids=(\[[\d, ]+\])", found)) is not None:
        values["stop_token_ids"] = json.loads(ids[1])
    if (stop := re.search(r"\bstop=(\[.*?\]), stop_token_ids", found)) and stop[1] != "[]":
        values["stop"] = list(ast.literal_eval(stop[1]))
    return values


def _logged_answer(text: str, name: str) -> dict[str, Any] | None:
    """What the log says came back; an answer that was streamed is logged whole, or only in parts."""
    parts, whole, reasons = [], None, []
    for line in text.splitlines():
        found = _OUTPUT.search(line)
        if found is None or _bare(found[1]) != _bare(name):
            continue
        said = _literal(line[found.end() :]) or ""
        if found[2]:
            parts.append(said)
        elif whole is None:
            whole = said
        else:  # of several answers (`n`) the first
            continue
        reasons += [reason for reason in _FINISH.findall(line)[-1:] if reason not in {"None", STREAMED}]
    if whole is None and not parts:
        return None
    content = redact("".join(parts) if whole is None else whole)[0]
    return {"choices": [{"message": {"content": content}, "finish_reason": reasons[-1] if reasons else None}]}


def _bare(name: str) -> str:
    """A request's own id: lines name it with its endpoint before it, or the number of its prompt behind it, or without."""
    return re.sub(r"^(?:chat)?cmpl-", "", name).removesuffix("-0")
