"""What `qgate repro` finds: tries, experiments, and the report that holds them. Data only, touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import Field

from qgate.schemas.base import Frozen

Body = dict[str, Any]
"""A request body as /v1/chat/completions (`messages`) or /v1/completions (`prompt`) takes it."""


class Try(Frozen):
    """One answer to an incident's request, and whether the failure shows in it."""

    failed: bool = Field(description="Whether the failure is recognised in the answer")
    text: str | None = Field(description="The answer's text; null where none came")
    finish_reason: str | None = Field(default=None, description="stop, length, or the server's own word")
    defects: tuple[str, ...] = Field(default=(), description="Names of the defects found in the answer")
    seed: int = Field(description="Seed that was sent")
    came: bool = Field(
        default=True, description="False where no answer came (error, timeout): the try counts for nothing"
    )
    why: str = Field(default="", description="What the failure was recognised by, or why no answer came")
    prompt_token_ids_sha256: str | None = Field(default=None, description="Proof of which prompt was read")
    prompt_tokens: int | None = Field(default=None, ge=0)
    completion_tokens: int | None = Field(default=None, ge=0)


Tries = Callable[[Body, int], Sequence[bool]]
"""(body, number of tries) → whether each failed, asked of the candidate as it was filed: the first so many tries of this
body, each with a seed of its own. Those that were had before come from the store, only what is missing is asked, so that
(body, 8) after (body, 4) costs 4 calls and begins with the same 4. Tries that did not come are left out. Raises
EngineError."""
