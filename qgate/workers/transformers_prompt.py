"""Requests in, prompt ids out. Part of the worker transformers_serve; touches nothing."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Prompt:
    """The ids that a model reads, and SHA-256 over them as little-endian int32."""

    ids: list[int]
    sha256: str


class PromptError(ValueError):
    """A request that no prompt can be made of, or whose prompt (then given) is too long."""

    def __init__(self, message: str, prompt: Prompt | None = None) -> None:
        super().__init__(message)
        self.prompt = prompt


def encode_request(tokenizer: Any, request: dict[str, Any]) -> Prompt:
    """The prompt of a request: raw text or ids, a verbatim chat body, or plain turns. Raises PromptError."""
    body = request.get("body") or {}
    prompt = request.get("prompt")
    if isinstance(prompt, str):
        return _prompt(tokenizer(prompt, add_special_tokens=body.get("add_special_tokens", True))["input_ids"])
    if prompt is not None:
        return _prompt(list(prompt))
    if not body:
        return encode(tokenizer, request["messages"])
    further = dict(body.get("chat_template_kwargs") or {})
    if body.get("tools"):
        further["tools"] = body["tools"]
    for name in ("add_generation_prompt", "continue_final_message", "chat_template"):
        if body.get(name) is not None:
            further[name] = body[name]
    return encode(tokenizer, [_plain(turn) for turn in body["messages"]], **further)


def _plain(turn: dict[str, Any]) -> dict[str, Any]:
    """A turn whose text parts are joined, as vLLM hands them to a template that expects text."""
    content = turn.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return {**turn, "content": content}


def encode(tokenizer: Any, messages: list[dict[str, Any]], **further: Any) -> Prompt:
    """The checkpoint's own chat template, with the turn of the assistant opened. Raises PromptError."""
    try:
        fields = {"add_generation_prompt": True, **further, "tokenize": True, "return_dict": False}
        ids = tokenizer.apply_chat_template(messages, **fields)
    except Exception as error:  # a template is a program of the checkpoint's: it may raise anything
        raise PromptError(f"the chat template does not take these messages: {error}") from error
    return _prompt(ids)


def encode_answer(tokenizer: Any, text: str) -> list[int]:
    """The ids of an answer that somebody wrote, where `<|im_end|>` is text and no special token. Raises PromptError."""
    try:
        ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    except (TypeError, ValueError) as error:  # a tokenizer of another kind than transformers' own
        raise PromptError(f"the tokenizer does not take a text without special tokens: {error}") from error
    if not ids:
        raise PromptError("the answer has no tokens")
    return list(ids)


def _prompt(ids: list[int]) -> Prompt:
    if not ids:
        raise PromptError("the prompt has no tokens")
    return Prompt(ids=ids, sha256=hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest())
