"""Chat messages in, prompt ids out. Part of the worker transformers_serve; touches nothing."""

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


def encode(tokenizer: Any, messages: list[dict[str, str]]) -> Prompt:
    """The checkpoint's own chat template, with the turn of the assistant opened. Raises PromptError."""
    try:
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)
    except Exception as error:  # a template is a program of the checkpoint's: it may raise anything
        raise PromptError(f"the chat template does not take these messages: {error}") from error
    if not ids:
        raise PromptError("the chat template gives an empty prompt")
    return Prompt(ids=ids, sha256=hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest())
