"""Stored files: a value and its kind and version in, JSON out, and back. Touches the disk.

Old versions are upgraded through an append-only chain; newer ones and other kinds are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from qgate.errors import ArtefactError
from qgate.io.files import write_text
from qgate.schemas.base import Stored

T = TypeVar("T", bound=Stored)

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
UPGRADES: dict[tuple[str, int], Upgrade] = {}
"""(kind, version) → what turns its fields into those of the next version. Append only; each has a golden file."""


def dumps(value: Stored) -> str:
    """`value` as readable JSON with its kind and version in front."""
    head = {"kind": value.KIND, "version": value.VERSION}
    return json.dumps({"qgate": head, **value.model_dump(mode="json")}, indent=1, ensure_ascii=False) + "\n"


def save(path: Path, value: Stored) -> None:
    """Write `value` whole or not at all. Raises StoreError."""
    write_text(path, dumps(value))


def load(path: Path, cls: type[T]) -> T:
    """Read a `cls` from `path`, upgrading older versions. Raises ArtefactError."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ArtefactError(
            f"{path} is not JSON: {error}", advice="delete its folder and run the recipe again"
        ) from error
    return parse(fields, cls, str(path))


def parse(fields: Any, cls: type[T], where: str) -> T:
    """A `cls` from already decoded JSON; `where` names its place in messages. Raises ArtefactError."""
    head = fields.pop("qgate", None) if isinstance(fields, dict) else None
    if not isinstance(head, dict) or head.get("kind") != cls.KIND:
        found = head.get("kind") if isinstance(head, dict) else None
        raise ArtefactError(f"{where} is no {cls.KIND} file (kind: {found})")
    version = head.get("version")
    if not isinstance(version, int) or not 1 <= version <= cls.VERSION:
        raise ArtefactError(
            f"{where} is a {cls.KIND} of version {version}, but this qgate reads up to {cls.VERSION}",
            advice="upgrade qgate",
        )
    for step in range(version, cls.VERSION):
        fields = UPGRADES[cls.KIND, step](fields)
    try:
        return cls.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ArtefactError(f"{where} is not a valid {cls.KIND}: {place}: {first['msg']}") from error
