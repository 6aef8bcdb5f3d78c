"""Reads the labelled answers beside this file: what is seen of each, and the defects that must be found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgate.judge.defects import Seen


@dataclass(frozen=True)
class Case:
    """One labelled answer."""

    id: str
    seen: Seen
    expect: tuple[str, ...]


def _seen(record: dict[str, Any]) -> Seen:
    reference = record.get("reference")
    logprobs = record.get("logprobs")
    return Seen(
        text=record["text"],
        prompt=record.get("prompt"),
        finish_reason=record.get("finish_reason"),
        completion_tokens=record.get("completion_tokens"),
        logprobs=None if logprobs is None else tuple(logprobs),
        tool_calls=record.get("tool_calls", 0),
        language=record.get("language"),
        reference=None if reference is None else _seen(reference),
    )


def read(name: str) -> list[Case]:
    """The cases of `name`; `text` may be given as `repeat`: [[text, times], ...]."""
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    cases = []
    for line in lines:
        record = json.loads(line)
        if "repeat" in record:
            record["text"] = "".join(text * times for text, times in record["repeat"])
        cases.append(Case(record["id"], _seen(record), tuple(sorted(record["expect"]))))
    return cases
