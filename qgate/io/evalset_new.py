"""A new set from one's own questions: JSON lines in, a locked set's folder out, whole or not at all. Touches the disk."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from qgate.errors import EvalsetError
from qgate.io import evalset_import, evalset_items
from qgate.io.evalset_import import Fault, Imported
from qgate.io.evalsets import ITEMS, MANIFEST, pins, write_manifest
from qgate.io.files import NO_PLACE, disk_errors, write_text
from qgate.io.scoring import load_scorer
from qgate.schemas.base import canonical_json
from qgate.schemas.evalset import EvalsetManifest, ScorerUse
from qgate.scorers.builtin import BuiltIn

ASIDE = "requests.jsonl"
MOST_SHOWN = 20


@dataclass(frozen=True)
class Terms:
    """What evalset.yaml says of a set beside its items."""

    description: str
    license_id: str
    generator: str | None = None
    """The command that makes the very same set."""


def new(folder: Path, source: Path, *, description: str, license_id: str, skip_bad: bool = False) -> Imported:
    """Make the set `folder` from the lines of `source` and say what came of them. Raises EvalsetError, StoreError.

    A bad line refuses the whole file, unless `skip_bad`; every bad line is named either way.
    """
    refuse_existing(folder)
    try:
        data = source.read_bytes()
    except OSError as error:
        raise EvalsetError(f"cannot read {source}: {error.strerror}") from error
    return make(folder, data, str(source), Terms(description, license_id), skip_bad=skip_bad)


def refuse_existing(folder: Path) -> None:
    """Raises EvalsetError where there is something already."""
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise EvalsetError(f"{folder} exists already", advice="name a folder that does not exist yet")


def make(folder: Path, data: bytes, source: str, terms: Terms, *, skip_bad: bool = False) -> Imported:
    """The same from the JSON lines `data`, which messages call `source`."""
    imported = evalset_import.read(data, _check)
    if imported.faults and not skip_bad:
        raise EvalsetError(
            f"nothing was written; bad lines ({len(imported.faults)}):\n{tell(imported.faults, source)}",
            advice="mend them, or pass --skip-bad to leave them out",
        )
    if not imported.items:
        raise EvalsetError(f"{source} holds no usable line\n{tell(imported.faults, source)}".rstrip())
    _write(folder, imported, _head(folder, terms))
    return imported


def tell(faults: tuple[Fault, ...], source: str) -> str:
    """Bad lines with their numbers, one a line; behind the first twenty only the numbers."""
    shown = [f"  {source}:{fault.line}: {fault.reason}" for fault in faults[:MOST_SHOWN]]
    if len(faults) > MOST_SHOWN:
        shown.append("  also bad: lines " + ", ".join(str(fault.line) for fault in faults[MOST_SHOWN:]))
    return "\n".join(shown)


def _check(use: ScorerUse) -> None:
    """Raises PluginError where there is no such scorer, ValueError where a built-in one does not take its arguments."""
    scorer = load_scorer(use.name)
    if isinstance(scorer, BuiltIn):
        scorer.read(use.args)


def _head(folder: Path, terms: Terms) -> dict[str, Any]:
    head = {"format": 1, "name": folder.name, "version": 1, "description": terms.description}
    return head | {"license": terms.license_id, "generator": terms.generator}


def _write(folder: Path, imported: Imported, head: dict[str, Any]) -> None:
    """The set beside its place, then moved into it."""
    with disk_errors(folder, *NO_PLACE):
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        lines = [canonical_json(item.model_dump(exclude_none=True)) for item in imported.items]
        write_text(beside / ITEMS, "\n".join(lines) + "\n")
        if imported.aside:
            write_text(beside / ASIDE, "\n".join(canonical_json(rest) for rest in imported.aside) + "\n")
        write_manifest(beside, _manifest({**head, "num_items": len(lines), "files": pins(beside)}))
        with disk_errors(folder, *NO_PLACE):
            beside.chmod(0o755)
            beside.replace(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _manifest(value: dict[str, Any]) -> EvalsetManifest:
    try:
        return EvalsetManifest.model_validate(value)
    except ValidationError as error:
        raise EvalsetError(
            f"{MANIFEST} would not be valid: {evalset_items.describe(error)}",
            advice="the folder's name is the set's name: lower-case letters, digits and hyphens",
        ) from error
