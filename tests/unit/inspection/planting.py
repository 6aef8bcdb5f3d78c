"""Copies of the small published checkpoints, opened and closed again with something in them changed."""

import json
import math
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgate.io import tensors

FIXTURES = Path(__file__).parents[2] / "golden" / "checkpoints"
BASELINE = FIXTURES / "baseline"
TYPES = {"F16": np.float16, "F32": np.float32, "I32": np.int32, "I64": np.int64, "I8": np.int8, "F8_E4M3": np.uint8}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items() if name != "F8_E4M3"}
Plant = Callable[["Opened"], None]
FIRST = "model.layers.0.mlp.down_proj"


class Opened:
    """A copy of a checkpoint: its tensors in memory, its JSON files as they are asked for."""

    def __init__(self, source: Path, folder: Path) -> None:
        shutil.copytree(source, folder)
        self.folder = folder
        self.types: dict[str, str] = {}
        self.arrays: dict[str, NDArray[Any]] = {}
        for name, tensor in tensors.read(folder).items():
            with tensor.file.open("rb") as stream:
                stream.seek(tensor.start)
                raw = np.frombuffer(stream.read(tensor.size_bytes), TYPES[tensor.dtype])
            self.arrays[name] = raw.reshape(tensor.shape).copy()
            self.types[name] = tensor.dtype

    def set(self, name: str, values: NDArray[Any], dtype: str | None = None) -> None:
        """Store a tensor, of the type that its values have if no other is named."""
        self.arrays[name] = values
        self.types[name] = dtype or NAMES[values.dtype]

    def drop(self, *names: str) -> None:
        for name in names:
            del self.arrays[name]

    def json(self, file: str, **changes: Any) -> None:
        """Change fields of a JSON file; `...` removes one, `quantization_config__bits` reaches inside."""
        path = self.folder / file
        content = json.loads(path.read_text()) if path.exists() else {}
        for dotted, value in changes.items():
            *parents, last = dotted.split("__")
            here = content
            for part in parents:
                here = here[part]
            if value is ...:
                del here[last]
            else:
                here[last] = value
        path.write_text(json.dumps(content))

    def config(self, **changes: Any) -> None:
        self.json("config.json", **changes)

    def close(self) -> Path:
        """Write the tensors, in one file."""
        write(self.folder / "model.safetensors", self.arrays, self.types)
        return self.folder

    def split(self, *, index: bool = True) -> None:
        """Write the tensors in two files instead, with an index."""
        self.close().joinpath("model.safetensors").unlink()
        files = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
        place = {name: files[number % 2] for number, name in enumerate(sorted(self.arrays))}
        for file in files:
            write(self.folder / file, {name: self.arrays[name] for name in place if place[name] == file}, self.types)
        if index:
            (self.folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": place}))


def write(file: Path, arrays: dict[str, NDArray[Any]], types: dict[str, str]) -> None:
    """A safetensors file."""
    header: dict[str, Any] = {}
    body = b""
    for name, values in arrays.items():
        data = np.ascontiguousarray(values).tobytes()
        assert len(data) == math.prod(values.shape) * values.dtype.itemsize
        header[name] = {
            "dtype": types[name],
            "shape": list(values.shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    file.write_bytes(struct.pack("<Q", len(raw)) + raw + body)
