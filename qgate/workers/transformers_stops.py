"""Texts that end an answer: tokens in, whether one was reached out. Part of the worker transformers_serve; touches nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Stops:
    """The stop texts of one request."""

    def __init__(self, tokenizer: Any, texts: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._texts = tuple(text for text in texts if text)
        longest = max((len(text.encode()) for text in self._texts), default=0)
        self._window = longest + 8  # a token is a byte at least; some more, so that no character is cut at the front

    def reached(self, tokens: list[int]) -> bool:
        """Whether the end of the answer holds one of the texts."""
        if not self._texts:
            return False
        tail = self._tokenizer.decode(
            tokens[-self._window :], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return any(text in tail for text in self._texts)

    def cut(self, text: str) -> str:
        """The answer before the first of the texts, which is no part of it."""
        ends = [at for stop in self._texts if (at := text.find(stop)) >= 0]
        return text[: min(ends)] if ends else text
