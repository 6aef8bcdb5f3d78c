"""run.json: what ran, on what, how long. Data only, touches nothing."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from qgate.schemas.answers import EngineFacts
from qgate.schemas.base import Frozen, Stored
from qgate.schemas.checkpoint import Checkpoint


class ArmRecord(Frozen):
    """One generate, rank or score step: its object in the store and what it cost."""

    step: str = Field(description="generate, rank or score")
    variant: str
    replicate: int = 0
    evalset: str
    profile: str
    key: str = Field(description="Content key of the stored object")
    cached: bool
    num_answers: int
    num_by_status: dict[str, int] = Field(default_factory=dict)
    completion_tokens: int = 0
    wall_s: float | None = Field(
        default=None,
        description="Seconds it took when it was made; None where an attempt was killed and its time is unknown",
    )


class Run(Stored):
    """One execution of a recipe."""

    KIND: ClassVar[str] = "run"

    run_id: str
    qgate_version: str
    started_at: str = Field(description="ISO 8601, UTC")
    finished_at: str
    recipe_name: str
    recipe_sha256: str
    host: dict[str, Any] = Field(description="platform, cpu, cores, memory, gpus")
    evalsets: dict[str, str] = Field(description="`long-text@1` to its sha256")
    checkpoints: dict[str, Checkpoint]
    engine_facts: dict[str, EngineFacts] = Field(description="Per variant: what served it")
    arms: tuple[ArmRecord, ...]
    timings_s: dict[str, float] = Field(description="Wall time per stage")
    failures: dict[str, str] = Field(default_factory=dict, description="Variants that could not be run, and why")
    notes: tuple[str, ...] = ()
