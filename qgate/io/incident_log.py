"""A vLLM log in; one of its requests and what came back out. Touches nothing.

vLLM logs requests since 0.26 as `Request ID JSON body: {…}` and `Request ID details: prompt: …, prompt_token_ids: […]`
(with --enable-log-requests at level DEBUG), before that as `Received request ID: prompt: …, params: SamplingParams(…)`
(vllm/entrypoints/…/request_logger.py). Token ids are taken before text: they say exactly what was read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from qgate.errors import IncidentError
from qgate.io.incident_curl import request_of
from qgate.io.incident_text import Pasted
from qgate.io.redact import redact
from qgate.judge.request_body import opening
from qgate.wording import counted

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
ADVICE = "serve with --enable-log-requests and VLLM_LOGGING_LEVEL=DEBUG, so that a log line holds the prompt"
WHOLE = "copy the lines whole, as vLLM wrote them, or give the request itself (--request)"
NO_ID = "N/A"
"""What vLLM logs where a request has none."""
MOST_LISTED = 20
Found = Mapping[str, re.Match[str]]
"""Where each request's prompt stands, by its bare id, in the order of the log: in its body, else in its details."""


def from_log(text: str, wanted: str | None = None) -> Pasted:
    """The request `wanted` of a vLLM log, by its id or its number in it, and its answer where it is logged.

    None: the only one. Raises IncidentError, which lists the requests where it is not clear which is meant.
    """
    try:
        return _pasted(text, _chosen(_found(text), wanted))
    except (ValueError, SyntaxError, OverflowError, MemoryError, RecursionError) as error:
        raise IncidentError(f"a line of the log cannot be read: {error}", advice=WHOLE) from error


def _found(text: str) -> Found:
    found: dict[str, re.Match[str]] = {}
    for line in text.splitlines():
        if match := _JSON_BODY.search(line) or _DETAILS.search(line):
            name = _bare(_name(match)) if _name(match) != NO_ID else f"{NO_ID} {len(found)}"
            if found.setdefault(name, match).re is _DETAILS:
                found[name] = match if match.re is _JSON_BODY else found[name]
    if not found and _RECEIVED.search(text):
        raise IncidentError("the log names a request, but not its prompt", advice=ADVICE)
    if not found:
        raise IncidentError("the log holds no line of a request", advice=ADVICE)
    return found


def _chosen(found: Found, wanted: str | None) -> re.Match[str]:
    requests = list(found.values())
    if wanted is None and len(requests) == 1:
        return requests[0]
    if wanted is not None and _bare(wanted) in found:
        return found[_bare(wanted)]
    if wanted is not None and wanted.isdecimal() and 0 < int(wanted) <= len(requests):
        return requests[int(wanted) - 1]
    lacks = "" if wanted is None else f", none of them {wanted}"
    listed = "".join(f"\n  {line}" for line in _listed(requests))
    advice = f"name the one that is meant by its id or its number: --item {len(requests)}"
    raise IncidentError(f"the log holds {counted(len(requests), 'request')}{lacks}:{listed}", advice=advice)


def _listed(requests: list[re.Match[str]]) -> Iterator[str]:
    """Number, id and the start of what was asked."""
    for number, match in enumerate(islice(requests, MOST_LISTED), start=1):
        try:
            asked = opening(request_of(redact(_body(match, as_text=True))[0]).body)
        except (IncidentError, ValueError, SyntaxError, MemoryError, RecursionError):
            asked = "(cannot be read)"
        yield f"{number}  {_name(match)}  {asked}"
    if len(requests) > MOST_LISTED:
        yield f"… and {len(requests) - MOST_LISTED} more"


def _pasted(text: str, match: re.Match[str]) -> Pasted:
    name = _name(match)
    sampling = {} if match.re is _JSON_BODY else _sampling(text, name)
    body, num = redact({**_body(match), **sampling})
    return Pasted(request_of(body), _logged_answer(text, name), num, f"a vLLM log, request {name}")


def _name(match: re.Match[str]) -> str:
    return str(match[1] or match[2])


def _body(match: re.Match[str], *, as_text: bool = False) -> dict[str, Any]:
    """What was asked, as the line has it; a prompt by its ids, unless its text is wanted and there."""
    if match.re is _JSON_BODY:
        return dict(_json_head(match[2]))
    return _prompt(match.string, match.end(), as_text=as_text)


def _json_head(text: str) -> Any:
    """The JSON object that a log line begins with. Raises IncidentError where the log cut it off."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError) as error:
        raise IncidentError("the log cut the request's body off", advice="serve without --max-log-len") from error


def _prompt(line: str, start: int, *, as_text: bool) -> dict[str, Any]:
    """The prompt's ids, else its text, which has the chat template in it already."""
    ids = _IDS.search(line)
    has_ids = ids is not None and ids[1] != "[]"
    if text := _literal(line[start:]) if as_text or not has_ids else None:
        return {"prompt": text, "add_special_tokens": False}
    if ids is None or not has_ids:
        raise IncidentError("the log line has no prompt in it", advice=ADVICE)
    return {"prompt": json.loads(ids[1])}


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
