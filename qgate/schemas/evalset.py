"""Evaluation sets: the manifest, its items and how an item is scored. Data only, touches nothing."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from qgate.schemas.base import Frozen

EVALSET_FORMAT = 1


class Message(Frozen):
    """One turn of a chat, as /v1/chat/completions takes it."""

    role: Literal["system", "user", "assistant"]
    content: str


class ScorerUse(Frozen):
    """A scorer by name (`qgate.scorers` entry point or built in) and its arguments."""

    name: str = Field(description="Name of the scorer")
    args: dict[str, Any] = Field(default_factory=dict, description="The scorer's own arguments")


class Item(Frozen):
    """One fixed input with a programmatic score."""

    id: str = Field(description="Unique in its set and never reused", min_length=1)
    messages: tuple[Message, ...] = Field(min_length=1, description="The prompt; the last turn is the user's")
    kind: str = Field(description="What is tested, e.g. `one-needle`, `ocr`, `json-schema`")
    language: str = Field(description="BCP 47 tag of the expected answer: en, zh, ja, ar, ru, es, th")
    difficulty: int = Field(ge=1, le=5, description="1: a 135M model does some; 5: a 70B model fails some")
    scorer: ScorerUse = Field(description="How an answer becomes a score in [0, 1]")
    reference: str | None = Field(
        default=None, pattern=r"\S", description="A right answer in full, where the scorer's arguments do not hold one"
    )
    slices: dict[str, str] = Field(
        default_factory=dict, description="More keys to break results down by: length, depth, noise, severity"
    )
    twin_of: str | None = Field(default=None, description="Id of the clean item that this is a noised twin of")
    max_tokens: int | None = Field(
        default=None, ge=1, description="Answer length the item needs, where it is not the profile's"
    )


class EvalsetFile(Frozen):
    """One file of a set, pinned."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size_bytes: int = Field(ge=0)


class EvalsetManifest(Frozen):
    """evalset.yaml: names a set and pins every byte of it."""

    format: Literal[1] = Field(description="Version of this format")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", description="Name without version")
    version: int = Field(ge=1, description="Rises with every change of an item")
    description: str = Field(description="One line")
    license: str = Field(description="SPDX id")
    num_items: int = Field(ge=1)
    generator: str | None = Field(default=None, description="Command that makes the very same bytes")
    files: dict[str, EvalsetFile] = Field(
        min_length=1, description="Relative path to hash; `qgate evalset lock` writes them"
    )

    @property
    def full_name(self) -> str:
        """`name@version`, as a recipe names it."""
        return f"{self.name}@{self.version}"


class Evalset(Frozen):
    """A loaded, verified set (or the cut of it that a recipe uses)."""

    name: str
    version: int
    sha256: str = Field(description="Hash over the manifest's file hashes: what `long-text@1` is locked to")
    items: tuple[Item, ...] = Field(min_length=1)

    @property
    def full_name(self) -> str:
        """`name@version`, as a recipe names it."""
        return f"{self.name}@{self.version}"
