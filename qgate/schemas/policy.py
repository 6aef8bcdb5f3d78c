"""policy.yaml: which interface serves which checkpoint, and what it falls back to. Data only, touches nothing."""

from __future__ import annotations

from typing import ClassVar

from pydantic import AwareDatetime, Field

from qgate.schemas.base import Frozen, Stored
from qgate.schemas.verdict import Verdict


class Fallback(Frozen):
    """What an interface may serve instead."""

    server: str
    needs_restart: bool = Field(
        description="Whether another server must be up for it: vLLM holds one checkpoint, quantized one way, until it ends"
    )


class Interface(Frozen):
    """One serving interface (a tier of the recipe)."""

    description: str = ""
    server: str | None = Field(description="Key under `servers`; null: it may serve nothing")
    default: str | None = Field(
        default=None, description="Variant that it is meant to serve; verdict and reason are of it"
    )
    verdict: Verdict = Field(description="Of its default variant")
    reason: str
    fallbacks: tuple[Fallback, ...] = Field(default=(), description="In the order in which they are to be tried")


class ServerPlan(Frozen):
    """One checkpoint and how it is served. Interfaces that name the same server share it."""

    precision: str
    checkpoint: str = Field(description="Directory or hub id")
    checkpoint_digest: str = Field(description="Content key over its files")
    verified: bool = Field(description="Whether its bytes were held against the evidence when this file was written")
    command: str = Field(description="For a shell")
    environment: dict[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = Field(default=(), description="What was not judged")


class Policy(Stored):
    """What may be served where, as one run's evidence says."""

    KIND: ClassVar[str] = "policy"

    run_id: str
    evidence_sha256: str
    signature: str = Field(description="Who signed the evidence, or that nobody did")
    written_at: AwareDatetime
    interfaces: dict[str, Interface]
    servers: dict[str, ServerPlan] = Field(
        description="By variant: every one that an interface serves or falls back to"
    )
