"""A shipped set made anew by its own generator, for the tests of the sets."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from qgate import scorers
from qgate.schemas.evalset import Item

ROOT = Path(__file__).parents[3] / "evalsets"


@dataclass(frozen=True)
class Remade:
    """What the generator wrote."""

    items: bytes
    references: dict[str, str]
    """Id to an answer that scores 1."""


def remake(name: str, folder: Path, hash_seed: str) -> Remade:
    """Run the generator of `name` in another process, with nothing of this environment but a hash seed."""
    script = [sys.executable, str(ROOT / name / "generate.py"), "--out", ".", "--references", "references.json"]
    subprocess.run(script, check=True, cwd=folder, env={"PYTHONHASHSEED": hash_seed})
    references = json.loads((folder / "references.json").read_text("utf-8"))
    return Remade((folder / "items.jsonl").read_bytes(), references)


def score(item: Item, answer: str) -> float:
    """What the set gives `answer`."""
    return scorers.load(item.scorer.name)(answer, item.scorer.args, item.language)
