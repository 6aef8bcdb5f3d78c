"""A directory in Hugging Face format in, a hashed Checkpoint (or the reason why it is none) out. Reads the disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qgate.errors import CheckpointError
from qgate.io import hashes, tensors
from qgate.io import precision as precisions
from qgate.schemas.checkpoint import Checkpoint, FileRecord, Making

MODEL_CARD = Path("README.md")
"""Says of a checkpoint what was found on it, and decides no byte of an answer; `qgate promote` writes into it."""


def read(
    folder: Path,
    name: str,
    *,
    precision: str | None = None,
    making: Making | None = None,
    source: Mapping[str, str] | None = None,
) -> Checkpoint:
    """The checkpoint in `folder`. `precision` overrides what config.json says. Raises CheckpointError, with the fix."""
    folder = folder.absolute()
    config = read_config(folder)
    found = tensors.read(folder)
    return Checkpoint(
        name=name,
        path=folder,
        precision=precision or precisions.precision(config, found),
        files=_records(folder),
        num_parameters=precisions.num_parameters(config, found),
        weight_bytes=sum(tensor.size_bytes for tensor in found.values()),
        making=making,
        source=dict(source or {}),
    )


def changed(checkpoint: Checkpoint) -> str | None:
    """A file that is not the one that was hashed, is new or is gone; None where all are as they were. Quick: see `hashes`."""
    try:
        now = _records(checkpoint.path)
    except (CheckpointError, OSError) as error:
        return str(error)
    was = checkpoint.files
    return next((name for name in sorted(was.keys() | now.keys()) if was.get(name) != now.get(name)), None)


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a checkpoint directory, which must name an architecture. Raises CheckpointError."""
    config = any_config(folder)
    if not config.get("architectures") or not config.get("model_type"):
        raise CheckpointError(
            f"{folder / 'config.json'} does not say `architectures` and `model_type`",
            advice="add both, as the model's authors published them",
        )
    return config


def any_config(folder: Path) -> dict[str, Any]:
    """config.json of a checkpoint directory, whatever it says (`Infinity` too, as transformers writes it).

    Raises CheckpointError.
    """
    if not folder.is_dir():
        advice = "paths are relative to the file that names them; `~` and $VARIABLES are not filled in"
        raise CheckpointError(f"no checkpoint directory at {folder}", advice=advice)
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(
            f"{folder} has no config.json",
            advice="name a directory in Hugging Face format (config.json, *.safetensors)",
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}", advice="copy or download it again") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} holds no object", advice="copy or download it again")
    return config


def _records(folder: Path) -> dict[str, FileRecord]:
    return {str(file.relative_to(folder)): record for file, record in hashes.records(files(folder)).items()}


def files(folder: Path) -> list[Path]:
    """Every file that an engine may read: all but the model card and tools' bookkeeping (.git, .cache).

    Raises CheckpointError where anything else is there: what is not hashed could change unnoticed.
    """
    found = []
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = Path(place)
        here = [inside / name for name in names if not name.startswith(".")]
        for path in [*(inside / name for name in folders), *here]:
            _refuse_odd(path, path.relative_to(folder))
        found += [path for path in here if path.relative_to(folder) != MODEL_CARD]
    return sorted(found)


def _refuse_odd(path: Path, name: Path) -> None:
    if not str(name).isprintable():
        raise CheckpointError(f"{str(name)!a} is a name with characters that cannot be shown", advice="rename it")
    if path.is_dir() and path.is_symlink():
        raise CheckpointError(f"{name} is a link to a folder, and what is in there is not hashed", advice="copy it in")
    if not path.is_dir() and not path.is_file():
        raise CheckpointError(f"{name} is neither file nor folder (a pipe, or a link to nothing)", advice="remove it")


def _unreadable(error: OSError) -> None:
    raise CheckpointError(f"{error.filename} cannot be read: {error.strerror}", advice="give qgate access") from error
