"""What a detector is shown of one answer. Data only, touches nothing."""

from __future__ import annotations

from dataclasses import dataclass

STOPPED = frozenset(
    {"stop", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls", "function_call", "tool_use"}
)
CUT = frozenset({"length", "max_tokens", "max_length"})
NO_FAULT = frozenset({"content_filter", "abort", "cancelled"})


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
