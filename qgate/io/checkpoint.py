"""A directory in Hugging Face format in, a hashed Checkpoint (or the reason why it is none) out. Reads the disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qgate.errors import CheckpointError
from qgate.io import hashes, tensors
from qgate.io import precision as precisions
from qgate.schemas.checkpoint import Checkpoint, Making

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
    records = hashes.records(files(folder))
    return Checkpoint(
        name=name,
        path=folder,
        precision=precision or precisions.precision(config, found),
        files={str(file.relative_to(folder)): record for file, record in records.items()},
        num_parameters=precisions.num_parameters(config, found),
        weight_bytes=sum(tensor.size_bytes for tensor in found.values()),
        making=making,
        source=dict(source or {}),
    )


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
        raise CheckpointError(
            f"no checkpoint directory at {folder}", advice="paths are relative to the file that names them"
        )
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


def files(folder: Path) -> list[Path]:
    """Every file that an engine may read: all but the model card and tools' bookkeeping (.git, .cache)."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and _is_read(path.relative_to(folder))]


def _is_read(relative: Path) -> bool:
    return relative != MODEL_CARD and not any(part.startswith(".") for part in relative.parts)
