"""What an engine is asked and what it answers. Data only; stored as JSON lines (answers) and npz (token scores)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from qgate.schemas.base import Frozen, Stored
from qgate.schemas.evalset import Message

Status = Literal["ok", "truncated", "timeout", "error"]


class Sampling(Frozen):
    """Effective sampling of one request: every field explicit, seed included."""

    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    max_tokens: int
    seed: int


class GenerateRequest(Frozen):
    """One answer wanted. `id` is `evalset/item/profile/seed` and unique within a run's arm."""

    id: str
    messages: tuple[Message, ...]
    sampling: Sampling
    logprobs: bool = Field(default=False, description="Whether the log-probability of each sampled token is wanted")
    stop: tuple[str, ...] | None = Field(
        default=None, description="Texts any of which ends the answer and is cut off it; None: the model's own end"
    )
    prompt: str | tuple[int, ...] | None = Field(
        default=None, description="A raw prompt (text or token ids) in place of `messages`, as /v1/completions takes it"
    )
    body: dict[str, Any] | None = Field(
        default=None,
        description="The request as somebody else sent it: engines that speak HTTP send it verbatim, the others read its "
        "turns and what they know of its fields. `sampling` says the same as it does",
    )


class Answer(Stored):
    """One answer as it came back; nothing is dropped, errors are answers too."""

    KIND: ClassVar[str] = "answer"

    id: str = Field(description="Id of the request")
    text: str | None = Field(
        description="Decoded text without special tokens; null where there is none (tool call, error)"
    )
    token_ids: tuple[int, ...] | None = Field(
        default=None, description="Generated ids, EOS included where it was sampled"
    )
    logprobs: tuple[float | None, ...] | None = Field(
        default=None, description="Natural log-probability per generated token where asked; None where it is not finite"
    )
    tool_calls: int = Field(default=0, ge=0)
    prompt_token_ids_sha256: str | None = Field(
        default=None, description="SHA-256 over the prompt's ids as little-endian int32: equal prompts, proven"
    )
    prompt_tokens: int | None = Field(default=None, ge=0)
    completion_tokens: int | None = Field(default=None, ge=0)
    finish_reason: str | None = Field(default=None, description="stop, length, or the server's own word")
    status: Status
    error: str | None = Field(default=None, description="What went wrong, where status is timeout or error")
    latency_s: float = Field(ge=0, description="Wall time of the attempt that answered")
    attempt: int = Field(default=1, ge=1)
    extra: dict[str, Any] = Field(
        default_factory=dict, description="Fields of the server's answer that qgate does not read"
    )


class ScoreRequest(Frozen):
    """Teacher forcing: the log-probability of each token of a given answer after the chat prompt `messages`."""

    id: str
    messages: tuple[Message, ...]
    completion_ids: tuple[int, ...] | None = Field(default=None, min_length=1, description="The answer's token ids, or")
    completion: str | None = Field(
        default=None, description="its text, which the engine turns into ids: no special token before, in or after it"
    )
    top_k: int = Field(default=20, ge=0)
    prompt: tuple[int, ...] | None = Field(
        default=None, min_length=1, description="Token ids of a raw prompt in place of `messages`"
    )

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        if (self.completion_ids is None) == (self.completion is None):
            raise ValueError("give exactly one of `completion_ids` and `completion`")
        return self


@dataclass(frozen=True)
class TokenScores:
    """Scores of one teacher-forced answer, natural logarithms. T positions, K kept alternatives.

    logprobs: float32[T], of the forced id; top_ids: int32[T, K] and top_logprobs: float32[T, K], most likely first.
    A non-finite value is kept as it came: it is a finding, not a gap. T is 0 for a text that could not be scored.
    """

    id: str
    token_ids: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    top_ids: NDArray[np.int32]
    top_logprobs: NDArray[np.float32]
    prompt_token_ids_sha256: str | None = None

    @classmethod
    def none(cls, request: ScoreRequest) -> Self:
        """Of a text that has no tokens, or too many for the model, or before a server that scores none: an absence, which
        is told."""
        nothing = np.empty(0, dtype=np.float32)
        lists = np.empty((0, request.top_k))
        return cls(request.id, nothing.astype(np.int32), nothing, lists.astype(np.int32), lists.astype(np.float32))


class EngineFacts(Stored):
    """What decided the bytes of an arm: recorded once per session, shown in every report."""

    KIND: ClassVar[str] = "engine_facts"

    engine: str = Field(description="Name of the engine plugin")
    version: str = Field(description="Version of the tool behind it")
    device: str = Field(description="e.g. `NVIDIA H200`, or the CPU's model name")
    driver: str | None = None
    dtype: str | None = Field(default=None, description="Arithmetic dtype of activations")
    kernels: dict[str, str] = Field(
        default_factory=dict, description="e.g. {linear: MarlinLinearKernel, attention: FLASH_ATTN}"
    )
    argv: tuple[str, ...] = Field(default=(), description="Command of the server, secrets removed")
    env_vars: dict[str, str] = Field(default_factory=dict, description="Variables that qgate set for the server")
    packages: dict[str, str] = Field(
        default_factory=dict, description="Versions that matter: torch, transformers, vllm"
    )
    notes: tuple[str, ...] = Field(default=(), description="What a reader must know about these numbers")
    start_s: float | None = Field(default=None, description="Seconds until the server was ready")
    details: dict[str, Any] = Field(default_factory=dict, description="Engine's own: memory profile, metrics, log path")
