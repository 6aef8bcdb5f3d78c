"""A model card on disk and a section with results in; the card with them in place out, all else as it was. Touches the disk."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResult, ModelCardData
from huggingface_hub.repocard_data import eval_results_to_model_index

from qgate.errors import ArtefactError
from qgate.io.files import write_text

_CARD = re.compile(r"\s*---[ \t]*\n(?P<front>.*?\n|)---[ \t]*(?:\n|\Z)(?P<body>.*)", re.DOTALL)
_OPENED = re.compile(r"\s*---[ \t]*\n")
_INDEX = re.compile(r"^model-index:.*\n(?:[ \t-].*\n|\n(?=[\n \t-]))*", re.MULTILINE)


def update(path: Path, section: str, results: Sequence[Mapping[str, Any]], name: str) -> None:
    """Put `section` (its first and last line mark it) and `results` (of EvalResult) into the card at `path`.

    `name` is the model's name in the index, where the card gives none. Raises ArtefactError, StoreError.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
        front, body = _parts(text.replace("\r\n", "\n"))
        if results:
            front = _indexed(front, [EvalResult(**result) for result in results], name)
    except (OSError, ValueError, TypeError, KeyError, yaml.YAMLError) as error:
        raise ArtefactError(
            f"{path} is no model card that can be read: {error}", advice="mend its front matter, or move it away"
        ) from error
    written = f"---\n{front}---\n{_placed(body, section)}"
    write_text(path, written.replace("\n", "\r\n") if "\r\n" in text else written)


def _parts(text: str) -> tuple[str, str]:
    """The front matter's YAML, which ends its lines, and the words."""
    if not _OPENED.match(text):
        return "", text
    found = _CARD.fullmatch(text)
    if found is None:
        raise ValueError("its front matter does not end")
    return found["front"], found["body"]


def _indexed(front: str, fresh: Sequence[EvalResult], name: str) -> str:
    """The front matter with the results in its index; every other line as it was, where it is written a key a line."""
    fields = yaml.safe_load(front) or {}
    if not isinstance(fields, dict):
        raise ValueError("its front matter is no mapping")  # noqa: TRY004
    data = ModelCardData(**fields)
    ours = {result.metric_name for result in fresh}
    kept = [old for old in data.eval_results or [] if old.metric_name not in ours]
    index = {"model-index": eval_results_to_model_index(data.model_name or name, [*kept, *fresh])}
    placed = _INDEX.sub("", front) + _dump(index)
    try:
        is_whole = yaml.safe_load(placed) == fields | index
    except yaml.YAMLError:
        is_whole = False
    return placed if is_whole else _dump(fields | index)


def _dump(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True, width=inf)


def _placed(text: str, section: str) -> str:
    """The section in place of an earlier one, or at the end."""
    lines = section.strip().splitlines()
    begin, end = text.find(lines[0]), text.find(lines[-1])
    if 0 <= begin < end:
        return text[:begin] + section.strip() + text[end + len(lines[-1]) :]
    return "\n\n".join(part for part in (text.rstrip(), section) if part.strip())
