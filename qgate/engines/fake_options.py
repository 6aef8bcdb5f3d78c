"""The fake engine's options: what a recipe plants in; which fault a draw means out. Pure."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from qgate.schemas.base import Frozen

FAULTS = ("loop", "garble", "empty", "role_leak", "nonfinite", "error", "timeout")
"""Faults by rate: one draw per prompt and seed decides which of them an answer has, if any."""


class FakeOptions(Frozen):
    """What the fake engine answers, and the faults in it. Rates are shares of all answers, in [0, 1]."""

    accuracy: float = Field(
        default=0.9, ge=0, le=1, description="Share of answers that quote the part of the prompt that is asked for"
    )
    answers: dict[str, str] = Field(
        default_factory=dict,
        description="Item id prefix to its right answer; {seed}, {echo} (what it would have quoted) are filled in",
    )
    drift: float = Field(
        default=0.0, ge=0, le=1, description="Share of answers that say the same in other words than other checkpoints"
    )
    noise: float = Field(
        default=0.0, ge=0, le=1, description="Share of answers that come out otherwise each time they are asked for"
    )
    race: float = Field(
        default=0.0, ge=0, le=1, description="Share of answers garbled while 4 or more requests are in flight"
    )
    loop: float = Field(default=0.0, ge=0, le=1, description="Rate of answers that repeat themselves until the limit")
    garble: float = Field(default=0.0, ge=0, le=1, description="Rate of answers in broken characters")
    empty: float = Field(default=0.0, ge=0, le=1, description="Rate of answers without a text")
    role_leak: float = Field(default=0.0, ge=0, le=1, description="Rate of answers that go on with the next turn")
    nonfinite: float = Field(default=0.0, ge=0, le=1, description="Rate of answers of `!` with NaN log-probabilities")
    error: float = Field(default=0.0, ge=0, le=1, description="Rate of requests that the server refuses")
    timeout: float = Field(default=0.0, ge=0, le=1, description="Rate of requests that time out")
    faults_above_temperature: float = Field(
        default=-1.0, description="The rates above hold only for temperatures above this"
    )
    faults_above_prompt_tokens: int = Field(default=0, ge=0, description="The rates above hold only for longer prompts")
    trigger: str = Field(
        default="", description="The rates above hold only for prompts with these words, in this order"
    )
    kernel: Literal["fast", "plain"] = Field(default="fast", description="Which of the two pretended kernels runs")
    bad_kernel: float = Field(default=0.0, ge=0, le=1, description="Share of answers garbled by the kernel `fast`")
    overflow: float = Field(default=0.0, ge=0, le=1, description="Share of answers garbled by arithmetic in float16")
    score_noise_nats: float = Field(
        default=0.0, ge=0, description="Standard deviation of each logit from other checkpoints', while scoring"
    )
    score_loss_nats: float = Field(default=0.0, ge=0, description="Taken off the forced token's logit, while scoring")
    template_drift: bool = Field(default=False, description="The prompt's token ids differ from other checkpoints'")
    refuse_start: bool = Field(default=False, description="The server does not start")
    die_after: int | None = Field(default=None, ge=0, description="The server dies after so many answers")
    die_times: int | None = Field(default=None, ge=1, description="Only the first so many sessions die; default: all")
    hang_after: int | None = Field(default=None, ge=0, description="The server hangs after so many answers")
    latency_s: float = Field(default=0.0, ge=0, description="Time that each answer takes; `concurrency` share it")

    @model_validator(mode="after")
    def _rates_fit(self) -> Self:
        if sum(getattr(self, name) for name in FAULTS) > 1 + 1e-9:
            raise ValueError(f"the rates of {', '.join(FAULTS)} add up to more than 1")
        return self

    def drawn(self, draw: float) -> str | None:
        """The fault that a draw in [0, 1) means, each as often as its rate; None for an answer without one."""
        for name in FAULTS:
            draw -= getattr(self, name)
            if draw < 0:
                return name
        return None
