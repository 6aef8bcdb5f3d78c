"""Recipes for tests: a small valid one as a dictionary, and writing it to a file."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from qgate.io.files import sha256_file

SMALL: dict[str, Any] = {
    "qgate": 1,
    "name": "small",
    "model": {"path": "model"},
    "variants": {"w8a8": {"checkpoint": {"path": "w8a8"}, "precision": "W8A8"}},
    "engine": {"name": "fake"},
    "evalsets": [{"name": "./tiny"}],
    "sampling": {"greedy": {"temperature": 0, "max_tokens": 160, "seeds": [0]}},
    "tiers": {
        "chat": {
            "default": "w8a8",
            "allow": ["w8a8"],
            "engines": ["fake"],
            "criteria": [{"metric": "score_loss", "margin": 0.05}],
        }
    },
}


def small(**changes: Any) -> dict[str, Any]:
    """The small recipe with dotted fields replaced (`engine__name="vllm"`); a value of `...` removes the field."""
    recipe = copy.deepcopy(SMALL)
    for dotted, value in changes.items():
        *parents, last = dotted.split("__")
        here = recipe
        for part in parents:
            here = here[part]
        if value is ...:
            del here[last]
        else:
            here[last] = value
    return recipe


def write(folder: Path, recipe: dict[str, Any] | str) -> Path:
    """`recipe` as folder/recipe.yaml."""
    path = folder / "recipe.yaml"
    path.write_text(recipe if isinstance(recipe, str) else yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")
    return path


def write_evalset(folder: Path, lines: list[str], name: str = "tiny") -> Path:
    """A locked set of these JSON lines under folder/name."""
    target = folder / name
    target.mkdir()
    (target / "items.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    pinned = {"sha256": sha256_file(target / "items.jsonl"), "size_bytes": (target / "items.jsonl").stat().st_size}
    manifest = {
        "format": 1,
        "name": name,
        "version": 1,
        "description": "For a test",
        "license": "Apache-2.0",
        "num_items": max(1, len(lines)),
        "files": {"items.jsonl": pinned},
    }
    (target / "evalset.yaml").write_text(yaml.safe_dump(manifest), encoding="utf-8")
    return target
