"""What all of qgate's models share: frozen, no unknown fields, canonical JSON, a kind and version where stored."""

from __future__ import annotations

import hashlib
import json
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails


class Frozen(BaseModel):
    """A value: immutable, hashable where its fields are, and closed to unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True, ser_json_inf_nan="constants")


class Stored(Frozen):
    """A value that qgate writes to disk under its kind and version (see qgate.io.artefact)."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1


def canonical_json(value: Any) -> str:
    """`value` (JSON types only) as the one text that its content key is taken from: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_key(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def faults(error: ValidationError) -> list[ErrorDetails]:
    """What is wrong, without a list being too short because its entries are: pydantic counts those out."""
    found = error.errors(include_url=False)
    around = {fault["loc"][:depth] for fault in found for depth in range(len(fault["loc"]))}
    return [fault for fault in found if fault["type"] != "too_short" or fault["loc"] not in around]
