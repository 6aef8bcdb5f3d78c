"""A model card on disk and a section with results in; the card with them in place out, all else as it was. Touches the disk."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from qgate.errors import ArtefactError
from qgate.io.files import write_text

FRONT_MATTER = re.compile(r"\s*---[ \t]*[\r\n]")


def update(path: Path, section: str, results: Sequence[Mapping[str, Any]], name: str) -> None:
    """Put `section` (its first and last line mark it) and `results` (of EvalResult) into the card at `path`.

    `name` is the model's name in the index, where the card gives none. Raises ArtefactError, StoreError.
    """
    card = _card(path)
    data = card.data
    assert isinstance(data, ModelCardData)
    fresh = [EvalResult(**result) for result in results]
    ours = {result.metric_name for result in fresh}
    if fresh:
        kept = [old for old in data.eval_results or [] if old.metric_name not in ours]
        data.model_name = data.model_name or name
        data.eval_results = kept + fresh
    card.text = _placed(card.text, section)
    write_text(path, str(card))


def _card(path: Path) -> ModelCard:
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return ModelCard(text if FRONT_MATTER.match(text) else f"---\n{{}}\n---\n{text}")
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ArtefactError(
            f"{path} is no model card that can be read: {error}", advice="mend its front matter, or move it away"
        ) from error


def _placed(text: str, section: str) -> str:
    """The section in place of an earlier one, or at the end."""
    lines = section.strip().splitlines()
    begin, end = text.find(lines[0]), text.find(lines[-1])
    if 0 <= begin < end:
        return text[:begin] + section.strip() + text[end + len(lines[-1]) :]
    return "\n\n".join(part for part in (text.rstrip(), section) if part.strip())
