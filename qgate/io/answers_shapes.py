"""The shapes in which answers are written down: one decoded JSON object in, its answers out. Touches nothing."""

from __future__ import annotations

from typing import Any

from qgate.judge.defects import Seen

Keyed = tuple[str | None, Seen]
_RESPONSES_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ShapeError(ValueError):
    """The object is no answer, or one of its fields has the wrong type. The message continues `line 3 …`."""


def answers_of(record: dict[str, Any]) -> list[Keyed]:
    """(id or None, what is seen) of each answer in `record`; several where a response has several choices."""
    if "custom_id" in record or isinstance(record.get("response"), dict):
        return _batch_line(record)
    if "choices" in record:
        return _choices(record)
    if record.get("object") == "response" or isinstance(record.get("output"), list):
        return [_responses_object(record)]
    if "text" in record:
        return [_plain(record)]
    raise ShapeError("has neither `text` nor `choices` nor `response`: it is no answer")


def _get(record: dict[str, Any], name: str, kinds: type | tuple[type, ...], wanted: str) -> Any:
    """The field, or None where it is missing or null."""
    value = record.get(name)
    if value is None:
        return None
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is int):
        raise ShapeError(f"has a `{name}` that is not {wanted}: {str(value)[:40]!r}")
    return value


def _text(record: dict[str, Any], name: str) -> str | None:
    """A string, or the joined text parts of a list of content parts."""
    value: str | list[Any] | None = _get(record, name, (str, list), "a string or null")
    if not isinstance(value, list):
        return value
    return "".join(part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str))


def _logprobs(values: Any) -> tuple[float | None, ...] | None:
    if values is None:
        return None
    if not isinstance(values, list) or not all(value is None or isinstance(value, int | float) for value in values):
        raise ShapeError("has `logprobs` that are not a list of numbers and nulls")
    return tuple(None if value is None else float(value) for value in values)


def _tool_calls(record: dict[str, Any]) -> int:
    value = _get(record, "tool_calls", (int, list), "a number or a list")
    return len(value) if isinstance(value, list) else int(value or 0)


def _prompt(record: dict[str, Any]) -> str | None:
    if (messages := _get(record, "messages", list, "a list of messages")) is not None:
        return "\n".join(_text(message, "content") or "" for message in messages if isinstance(message, dict))
    return _text(record, "prompt")


def _id(record: dict[str, Any]) -> str | None:
    value = _get(record, "id", (str, int), "a string or a number")
    return None if value is None else str(value)


def _plain(record: dict[str, Any]) -> Keyed:
    """The simple format, which qgate's stored answers share."""
    status = _get(record, "status", str, "a string")
    if status in {"error", "timeout"}:
        raise ShapeError(f"holds no answer: status {status}, {record.get('error') or 'no reason given'}")
    finish_reason = _get(record, "finish_reason", str, "a string or null")
    seen = Seen(
        text=_text(record, "text"),
        prompt=_prompt(record),
        finish_reason=finish_reason or ("length" if status == "truncated" else None),
        completion_tokens=_get(record, "completion_tokens", int, "a whole number"),
        logprobs=_logprobs(record.get("logprobs")),
        tool_calls=_tool_calls(record),
        language=_get(record, "language", str, "a language tag"),
        reference=_reference(record),
    )
    return _id(record), seen


def _reference(record: dict[str, Any]) -> Seen | None:
    """The baseline's answer beside it: a text that ended by itself, or an object of the same format."""
    value = _get(record, "reference", (str, dict), "a string or an object")
    if isinstance(value, str):
        return Seen(text=value, finish_reason="stop")
    if isinstance(value, dict):
        return _plain({**value, "reference": None})[1]
    return None


def _batch_line(record: dict[str, Any]) -> list[Keyed]:
    key = _get(record, "custom_id", str, "a string")
    response = _get(record, "response", dict, "an object")
    body = response.get("body") if response else None
    error = record.get("error") or (body.get("error") if isinstance(body, dict) else None)
    if error:
        raise ShapeError(f"holds no answer: the request failed: {str(error)[:120]}")
    if not isinstance(body, dict):
        raise ShapeError("has no `response.body`: it is no answer")
    answers = answers_of(body)
    return [(_numbered(key, index, len(answers)), seen) for index, (_, seen) in enumerate(answers)]


def _numbered(key: str | None, index: int, num: int) -> str | None:
    return key if num == 1 or key is None else f"{key}#{index}"


def _choices(record: dict[str, Any]) -> list[Keyed]:
    """A chat.completion or text_completion: one answer per choice."""
    choices = _get(record, "choices", list, "a list")
    if not choices:
        raise ShapeError("has no `choices`: it is no answer")
    usage = _get(record, "usage", dict, "an object") or {}
    tokens = _get(usage, "completion_tokens", int, "a whole number") if len(choices) == 1 else None
    key, prompt = _id(record), _prompt(record)
    return [
        (_numbered(key, index, len(choices)), _choice(choice, prompt, tokens)) for index, choice in enumerate(choices)
    ]


def _choice(choice: Any, prompt: str | None, tokens: int | None) -> Seen:
    if not isinstance(choice, dict):
        raise ShapeError("has a choice that is not an object")
    message = _get(choice, "message", dict, "an object")
    if message is None and "text" not in choice:
        raise ShapeError("has a choice without `message` and `text` (a streamed chunk is no answer)")
    source = choice if message is None else message
    logprobs = _get(choice, "logprobs", dict, "an object") or {}
    values = logprobs.get("token_logprobs")
    if isinstance(logprobs.get("content"), list):
        values = [token.get("logprob") if isinstance(token, dict) else None for token in logprobs["content"]]
    return Seen(
        text=_text(source, "text" if message is None else "content"),
        prompt=prompt,
        finish_reason=_get(choice, "finish_reason", str, "a string or null"),
        completion_tokens=tokens,
        logprobs=_logprobs(values),
        tool_calls=_tool_calls(source) + (1 if isinstance(source.get("function_call"), dict) else 0),
    )


def _responses_object(record: dict[str, Any]) -> Keyed:
    """A response of the Responses API: its message items are the text, its other calls tool calls."""
    output = _get(record, "output", list, "a list") or []
    items = [item for item in output if isinstance(item, dict)]
    texts = [_text(item, "content") or "" for item in items if item.get("type") == "message"]
    details = _get(record, "incomplete_details", dict, "an object") or {}
    reason = details.get("reason")
    usage = _get(record, "usage", dict, "an object") or {}
    seen = Seen(
        text="".join(texts) if texts else None,
        finish_reason=_RESPONSES_REASONS.get(str(reason), str(reason)) if reason else "stop",
        completion_tokens=_get(usage, "output_tokens", int, "a whole number"),
        tool_calls=sum(str(item.get("type", "")).endswith("_call") for item in items),
    )
    return _id(record), seen
