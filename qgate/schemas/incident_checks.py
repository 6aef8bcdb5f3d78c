"""What a filed request and response must be for a replay to read them: JSON values in, whether they are out. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

NUMBERS = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
COUNTS = ("top_k", "seed", "max_tokens", "max_completion_tokens")
LEAST = {"temperature": 0, "max_tokens": 1, "max_completion_tokens": 1}
"""Sampling fields of a body: numbers, whole numbers, and the least that a server takes."""


def are_turns(messages: Any) -> bool:
    """Whether these are turns of a chat."""
    return isinstance(messages, list) and all(isinstance(turn, dict) and "role" in turn for turn in messages)


def is_prompt(prompt: Any) -> bool:
    """A text, token ids, or a list with one of these."""
    if isinstance(prompt, list) and len(prompt) == 1 and not isinstance(prompt[0], int):
        prompt = prompt[0]
    return isinstance(prompt, str) or (isinstance(prompt, list) and all(type(each) is int for each in prompt))


def wrong_values(body: dict[str, Any]) -> Iterator[str]:
    """What no server takes, and what no JSON text can hold."""
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):
        yield "the body holds NaN, an infinite number, half a character (a lone surrogate), or what is not JSON"
    for name in (*NUMBERS, *COUNTS):
        value, kinds = body.get(name), (int,) if name in COUNTS else (int, float)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
            yield f"`{name}` of the body is no {'whole ' if name in COUNTS else ''}number"
        elif value is not None and name in LEAST and value < LEAST[name]:
            yield f"`{name}` of the body is less than {LEAST[name]}"
    stop = body.get("stop")
    if stop is not None and not (isinstance(stop, str) or _are_texts(stop)):
        yield "`stop` of the body is neither a text nor a list of texts"


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def is_response(answer: dict[str, Any]) -> bool:
    """Whether the parts that are read of a response have the types that the API gives them."""
    choices, usage = answer.get("choices"), answer.get("usage")
    if not isinstance(choices or [], list) or not isinstance(usage or {}, dict):
        return False
    choice = choices[0] if choices else answer
    if not isinstance(choice, dict) or not isinstance(choice.get("message") or {}, dict):
        return False
    message = choice.get("message") or choice
    texts = (message.get("content"), choice.get("text"), choice.get("finish_reason"))
    tokens = (usage or {}).get("completion_tokens")
    return all(isinstance(text, str | None) for text in texts) and (tokens is None or type(tokens) is int)
