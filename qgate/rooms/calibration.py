"""Calibration texts: a recipe's choice in, a JSON Lines file of just the texts to use out. Touches the disk.

A line is {"text": …} or {"messages": [{role, content}, …]}; the worker renders messages in the model's chat template.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from qgate.errors import CheckpointError
from qgate.io.files import write_text
from qgate.schemas.variant import Calibration, Variant

ROLES = frozenset({"system", "user", "assistant"})


def choose(calibration: Calibration, target: Path) -> Path:
    """Write `num_samples` texts of the file, chosen and ordered by `seed`, to `target`. Raises CheckpointError."""
    entries = check(calibration)
    chosen = random.Random(calibration.seed).sample(entries, calibration.num_samples)
    write_text(target, "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in chosen))
    return target


def check_files(variants: Iterable[Variant]) -> None:
    """Refuse files that cannot be used before the model is fetched, even where the algorithm needs none: a checkpoint is
    named by their hash too. Raises CheckpointError."""
    for variant in variants:
        if variant.calibration is not None and variant.calibration.file is not None:
            check(variant.calibration)


def check(calibration: Calibration) -> list[dict[str, Any]]:
    """Every text of the file. Raises CheckpointError where it is missing, malformed, or has too few."""
    path = calibration.file
    assert path is not None, "a dataset is read by a worker"
    entries = read(path)
    if len(entries) < calibration.num_samples:
        raise CheckpointError(
            f"{path} has {len(entries)} texts; calibration.num_samples asks for {calibration.num_samples}",
            advice=f"set num_samples to {len(entries)} or fewer, or give a larger file"
            if entries
            else "give another file",
        )
    return entries


def read(path: Path) -> list[dict[str, Any]]:
    """The texts of a .jsonl or .txt file (paragraphs between blank lines). Raises CheckpointError with the line."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CheckpointError(f"no calibration file at {path}", advice="paths are relative to the recipe") from None
    except UnicodeDecodeError:
        raise CheckpointError(f"{path} is not UTF-8", advice="save it as UTF-8") from None
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read: {error.strerror}", advice="check the path in the recipe"
        ) from None
    if path.suffix == ".txt":
        return [{"text": part.strip()} for part in re.split(r"\n\s*\n", text) if part.strip()]
    lines = enumerate(text.split("\n"), start=1)
    return [_entry(line, f"{path}:{number}") for number, line in lines if line.strip()]


def _entry(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise CheckpointError(f"{where}: not JSON: {error}", advice="one JSON object a line, or a .txt file") from None
    if isinstance(entry, dict):
        if isinstance(entry.get("text"), str) and entry["text"].strip():
            return {"text": entry["text"]}
        messages = entry.get("messages")
        if isinstance(messages, list) and messages and all(_is_message(message) for message in messages):
            return {"messages": [{"role": message["role"], "content": message["content"]} for message in messages]}
    raise CheckpointError(f"{where}: neither a `text` nor chat `messages`", advice="give every line one of the two")


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("role") in ROLES and isinstance(value.get("content"), str)
