"""An incident's request body in, requests that both arms are asked alike out. Pure.

What a body leaves out, a server fills in: from the checkpoint's generation_config.json, unless it was told not to. A
replay writes every value down, so that two servers cannot fill in different ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qgate.schemas.answers import GenerateRequest, Sampling
from qgate.schemas.evalset import Message
from qgate.schemas.incident import CHAT, Request
from qgate.schemas.minimised import Body

NEUTRAL: Mapping[str, float] = {
    "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0,
    "presence_penalty": 0.0, "frequency_penalty": 0.0,
}  # fmt: skip
"""What vLLM takes where neither the request nor generation_config.json says (vllm/sampling_params.py)."""
OF_GENERATION_CONFIG = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What vLLM takes from generation_config.json as a default (ModelConfig.get_diff_sampling_param)."""
LIMITS = ("max_completion_tokens", "max_tokens")
DEFAULT_LIMIT, LEAST_LIMIT = 1024, 256
UNREAD_BY_REFERENCE = (
    "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
    "logit_bias", "bad_words", "stop_token_ids", "ignore_eos", "min_tokens", "tool_choice", "echo", "suffix",
    "truncate_prompt_tokens",
)  # fmt: skip
"""Fields that change an answer and that only engines that speak HTTP obey."""
ROLES = {"developer": "system", "system": "system", "assistant": "assistant"}


def server_defaults(generation_config: Mapping[str, Any]) -> dict[str, Any]:
    """Sampling values that a server takes from generation_config.json for what a request leaves out."""
    found = {name: generation_config[name] for name in OF_GENERATION_CONFIG if generation_config.get(name) is not None}
    if found.get("top_k") == 0:
        found["top_k"] = -1
    limit = generation_config.get("max_new_tokens")
    return found | ({"max_tokens": limit} if isinstance(limit, int) else {})


def limit_for(completion_tokens: int | None) -> int:
    """A limit for an answer whose request names none: twice what came, since a loop would fill the whole context."""
    return DEFAULT_LIMIT if completion_tokens is None else max(LEAST_LIMIT, 2 * completion_tokens)


def filled(body: Body, defaults: Mapping[str, Any], limit: int) -> Body:
    """`body` with every sampling value written down: its own, else the server's default, else the neutral one."""
    full = dict(body)
    for name, neutral in NEUTRAL.items():
        if full.get(name) is None:
            full[name] = defaults.get(name, neutral)
    if all(full.get(name) is None for name in LIMITS):
        full["max_tokens"] = defaults.get("max_tokens", limit)
    return full


def left_out(body: Body) -> tuple[str, ...]:
    """Sampling fields that the body does not name."""
    missing = [name for name in NEUTRAL if body.get(name) is None]
    return (*missing, *(["max_tokens"] if all(body.get(name) is None for name in LIMITS) else []))


def sampling_of(body: Body, seed: int) -> Sampling:
    """What a body's own values come to; neutral where it has none."""
    values = {name: body[name] if body.get(name) is not None else neutral for name, neutral in NEUTRAL.items()}
    limit = next((body[name] for name in LIMITS if body.get(name) is not None), DEFAULT_LIMIT)
    return Sampling(**values, max_tokens=limit, seed=seed)


def as_request(request_id: str, body: Body, seed: int, *, logprobs: bool = False) -> GenerateRequest:
    """The request that an engine is handed: the body verbatim, and what it says in qgate's own terms."""
    return GenerateRequest(
        id=request_id,
        messages=messages_of(body),
        sampling=sampling_of(body, seed),
        logprobs=logprobs or bool(body.get("logprobs")),
        prompt=raw_prompt(body),
        body=body,
    )


def messages_of(body: Body) -> tuple[Message, ...]:
    """The turns as plain texts; a raw prompt is the user's one turn."""
    if "messages" not in body:
        return (Message(role="user", content=prompt_text(body)),)
    return tuple(Message(role=_role(turn), content=content_text(turn.get("content"))) for turn in body["messages"])


def _role(turn: Mapping[str, Any]) -> Any:
    return ROLES.get(str(turn.get("role")), "user")


def content_text(content: Any) -> str:
    """A turn's content as text: its text parts joined, everything else left out."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def raw_prompt(body: Body) -> str | tuple[int, ...] | None:
    """The prompt of a /v1/completions body: its text or token ids, of several the first. None for a chat."""
    if "messages" in body:
        return None
    prompt = body["prompt"]
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        prompt = prompt[0]
    return tuple(prompt) if isinstance(prompt, list) else str(prompt)


def prompt_text(body: Body) -> str:
    """The prompt for detectors, which look for what it asks for: all turns in their order, or the raw text."""
    if "messages" in body:
        return "\n".join(content_text(turn.get("content")) for turn in body["messages"])
    raw = raw_prompt(body)
    return raw if isinstance(raw, str) else ""


def opening(body: Body, width: int = 60) -> str:
    """The start of what the user said last, or of a raw prompt, on one line of at most `width` printable characters."""
    raw = raw_prompt(body)
    if isinstance(raw, tuple):
        return f"{len(raw)} token ids"
    said = [turn.content for turn in messages_of(body) if turn.role == "user"] or [prompt_text(body)]
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in said[-1]).split())
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


def stop_strings(body: Body) -> tuple[str, ...]:
    """The texts that end an answer."""
    stop = body.get("stop")
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def cut_at_stop(text: str, stops: Sequence[str]) -> str:
    """`text` up to the first stop string: where an engine that knows them all would have ended."""
    ends = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def unread(request: Request) -> tuple[str, ...]:
    """Fields of the request that an engine without HTTP does not obey."""
    media = ("content that is not text",) if request.endpoint == CHAT and _has_media(request.body) else ()
    return (*(name for name in UNREAD_BY_REFERENCE if request.body.get(name)), *media)


def _has_media(body: Body) -> bool:
    parts = [part for turn in body["messages"] if isinstance(turn.get("content"), list) for part in turn["content"]]
    return any(not isinstance(part, dict) or part.get("type") != "text" for part in parts)
