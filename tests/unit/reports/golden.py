"""Compares a text with its golden file; QGATE_UPDATE_GOLDEN=1 writes it instead, to be read before it is committed."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "golden" / "reports"


def same_as_golden(text: str, name: str) -> None:
    path = FOLDER / name
    if os.environ.get("QGATE_UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} changed; QGATE_UPDATE_GOLDEN=1 rewrites it"
