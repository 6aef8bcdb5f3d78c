"""A checkpoint's weights changed on purpose: safetensors read and written whole, without torch. Touches the disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = "model.safetensors"
Tensor = tuple[str, list[int], bytes]
"""dtype, shape, data."""
Tensors = dict[str, Tensor]


def harmed(model: Path, target: Path, harm: Callable[[Tensors], None]) -> Path:
    """A copy of `model` at `target` whose tensors `harm` has changed in place."""
    shutil.copytree(model, target, ignore=shutil.ignore_patterns(FILE))
    tensors = read(model / FILE)
    harm(tensors)
    write(target / FILE, tensors)
    return target


def read(path: Path) -> Tensors:
    """Every tensor of a safetensors file."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {
        name: (
            entry["dtype"],
            entry["shape"],
            data[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]],
        )
        for name, entry in header.items()
    }


def write(path: Path, tensors: Tensors) -> None:
    """The tensors as one safetensors file, in the order given."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + len(data)]}
        place += len(data)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as stream:
        stream.write(len(head).to_bytes(8, "little") + head)
        for _, _, data in tensors.values():
            stream.write(data)
