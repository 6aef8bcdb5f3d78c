"""What the fake engine reads of a checkpoint: a folder in, planted faults out. Reads the disk.

fake.json               faults of the weights: they stay whatever engine or options serve them
chat_template.jinja     its bytes are part of every prompt's token ids
generation_config.json  an answer ends only where `eos_token_id` holds the fake model's
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from qgate.engines.fake_model import EOS_ID
from qgate.errors import StartError
from qgate.schemas.base import Frozen

FILE = "fake.json"


class FakeWeights(Frozen):
    """Faults of a checkpoint. Rates are shares of answers, in [0, 1]."""

    loop: float = Field(default=0.0, ge=0, le=1, description="Rate of answers that repeat themselves until the limit")
    garble: float = Field(default=0.0, ge=0, le=1, description="Rate of answers in broken characters")
    overflow: float = Field(default=0.0, ge=0, le=1, description="Rate of answers garbled in float16 alone")
    above_temperature: float = Field(default=-1.0, description="The rates hold only for temperatures above this")
    above_prompt_tokens: int = Field(default=0, ge=0, description="The rates hold only for longer prompts")
    trigger: str = Field(default="", description="The rates hold only for prompts with all these words in this order")
    trained_template: str | None = Field(
        default=None, description="SHA-256 of the chat template that the model knows; with another it answers garbage"
    )


class FakeCheckpoint(Frozen):
    """A checkpoint as the fake engine sees it."""

    weights: FakeWeights = FakeWeights()
    template: str = Field(default="", description="SHA-256 of chat_template.jinja; empty where there is none")
    ends: bool = Field(default=True, description="Whether the EOS token ends an answer")


def read(folder: Path, name: str) -> FakeCheckpoint:
    """The checkpoint in `folder`. Raises StartError where one of its files cannot be read."""
    template = folder / "chat_template.jinja"
    try:
        return FakeCheckpoint(
            weights=FakeWeights.model_validate(_json(folder / FILE)),
            template=hashlib.sha256(template.read_bytes()).hexdigest() if template.is_file() else "",
            ends=_ends(_json(folder / "generation_config.json")),
        )
    except (OSError, ValueError, ValidationError) as error:
        raise StartError(f"the fake engine cannot read {folder} ({name}): {error}") from error


def holds(weights: FakeWeights, temperature: float, prompt: str, prompt_tokens: int) -> bool:
    """Whether the faults' conditions are met."""
    if temperature <= weights.above_temperature or prompt_tokens <= weights.above_prompt_tokens:
        return False
    return has_trigger(prompt, weights.trigger)


def has_trigger(prompt: str, trigger: str) -> bool:
    """Whether the trigger's words stand in the prompt in their order, with anything between them."""
    words = iter(prompt.split())
    return all(any(word.strip(".,;:!?") == wanted for word in words) for wanted in trigger.split())


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def _ends(generation_config: dict[str, Any]) -> bool:
    said = generation_config.get("eos_token_id", EOS_ID if not generation_config else None)
    return EOS_ID in (said if isinstance(said, list) else [said])
