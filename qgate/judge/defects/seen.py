"""What a detector is shown of one answer, and what the words for its end say. Touches nothing."""

from __future__ import annotations

from dataclasses import dataclass

STOPPED = frozenset(
    {"stop", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls", "function_call", "tool_use"}
)
CUT = frozenset({"length", "max_tokens", "max_length"})
NO_FAULT = frozenset({"content_filter", "abort", "cancelled"})
ENDED = STOPPED | NO_FAULT
"""Reasons that say of an answer that no token limit ended it: OpenAI's, TGI's (eos_token, stop_sequence) and Anthropic's
(end_turn, stop_sequence, tool_use). None and any other word leave it open."""


def was_cut(reason: str | None, num_tokens: int | None, max_tokens: int | None) -> bool:
    """Whether the token limit ended an answer, by the server's word or, where that tells nothing, by its length."""
    if reason in CUT | ENDED or num_tokens is None or max_tokens is None:
        return reason in CUT
    return num_tokens >= max_tokens


@dataclass(frozen=True, slots=True)
class Seen:
    """One answer, the prompt that it answers, and the baseline's answer to the same request.

    What is unknown is None: an unknown prompt asks for nothing and forbids nothing.
    """

    text: str | None
    prompt: str | None = None
    finish_reason: str | None = None
    completion_tokens: int | None = None
    logprobs: tuple[float | None, ...] | None = None
    """Natural log-probability per generated token; None where it came as null."""
    tool_calls: int = 0
    language: str | None = None
    """BCP 47 tag of the language that the answer should be in."""
    reference: Seen | None = None
    """The baseline's answer to the same request; its own `reference` is not read."""

    @property
    def stopped(self) -> bool:
        """Whether the model itself ended the answer."""
        return self.finish_reason in STOPPED

    @property
    def cut(self) -> bool:
        """Whether the token limit ended the answer."""
        return self.finish_reason in CUT
