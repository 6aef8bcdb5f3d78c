"""The tensors of a checkpoint directory: names, types, shapes and sizes from the safetensors headers. Reads the disk.

Nothing is loaded: a header is 8 bytes of length (little endian) and so much JSON, name to {dtype, shape, data_offsets};
https://github.com/huggingface/safetensors#format.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgate.errors import CheckpointError

INDEX = "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
MAX_HEADER_BYTES = 100_000_000
POINTER_BYTES = 1024
"""What Git LFS leaves in a file's place where the file was not fetched is text of less than this (its specification)."""
DTYPE_BITS = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I8": 8, "U8": 8, "BOOL": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """One stored tensor. `start` is the offset of its first byte in `file`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path
    start: int
    size_bytes: int

    @property
    def num_elements(self) -> int:
        """Stored elements: packed weights count as the integers that they are packed in."""
        return math.prod(self.shape)

    def integers(self) -> tuple[int, ...]:
        """The values of a small I64 tensor, such as `weight_shape`."""
        with self.file.open("rb") as stream:
            stream.seek(self.start)
            return struct.unpack(f"<{self.num_elements}q", stream.read(8 * self.num_elements))


def read(folder: Path) -> dict[str, Tensor]:
    """Every tensor of the checkpoint `folder` by name. Raises CheckpointError, with the fix."""
    tensors: dict[str, Tensor] = {}
    for file in shards(folder):
        for tensor in header(file):
            if tensor.name in tensors:
                raise _broken(
                    f"{folder} has the tensor {tensor.name} twice ({tensors[tensor.name].file.name}, {file.name})"
                )
            tensors[tensor.name] = tensor
    if not any(tensor.num_elements for tensor in tensors.values()):
        raise _broken(f"{folder} has safetensors files without a tensor that holds a value")
    if (folder / INDEX).is_file():
        _check_index(folder, tensors)
    return tensors


def shards(folder: Path) -> list[Path]:
    """The weight files that belong to the model, sorted. Raises CheckpointError where they do not make a whole one."""
    if (folder / INDEX).is_file():
        named = sorted(set(weight_map(folder).values()))
        gone = [name for name in named if not is_shard(folder, name)]
        if gone:
            raise _broken(
                f"{folder} lacks {len(gone)} of {len(named)} weight files that {INDEX} names: {', '.join(gone[:3])}"
            )
        return [folder / name for name in named]
    found = unnamed(folder)
    if not found:
        raise _no_safetensors(folder)
    if len(found) > 1:
        raise _broken(f"{folder} has {len(found)} weight files and no {INDEX} that says which belong to the model")
    return found


def unnamed(folder: Path) -> list[Path]:
    """The weight files, sorted, where no index names them; Mistral's own form of a model only where it stands alone."""
    found = sorted(folder.glob("*.safetensors"))
    return [path for path in found if not path.match("consolidated*")] or found


def is_shard(folder: Path, name: str) -> bool:
    """Whether an index's file is one that is hashed: hidden, or not in the folder itself, it could change unnoticed."""
    try:
        return Path(name).name == name and not name.startswith(".") and (folder / name).is_file()
    except OSError:
        return False


@dataclass(frozen=True)
class Layout:
    """What one file's header says, and whether the file is as long as that."""

    tensors: tuple[Tensor, ...]
    end_bytes: int
    size_bytes: int


def header(file: Path) -> list[Tensor]:
    """The tensors of one file, in its order. Raises CheckpointError where the file is truncated or no safetensors."""
    found = layout(file)
    if found.end_bytes != found.size_bytes:
        what = "truncated" if found.end_bytes > found.size_bytes else "longer than its header says"
        raise _broken(f"{file} is {what}: {found.size_bytes} bytes, not {found.end_bytes}")
    return list(found.tensors)


def layout(file: Path) -> Layout:
    """The header of one file, whatever follows it. Raises CheckpointError where there is none that can be read."""
    raw, size = _raw_header(file)
    try:
        entries: dict[str, Any] = json.loads(raw)
        _check_metadata(entries.get("__metadata__"))
        tensors = [
            _tensor(name, entry, file, 8 + len(raw)) for name, entry in entries.items() if name != "__metadata__"
        ]
        end = _end(tensors, 8 + len(raw))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _broken(f"{file} has a header that is not a safetensors header: {error}") from None
    return Layout(tuple(tensors), end, size)


def _raw_header(file: Path) -> tuple[bytes, int]:
    """The header's JSON, and the size of the file."""
    if not file.is_file():
        raise _broken(f"{file} is no file that can be read (a folder, a pipe, or a link to nothing)")
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            prefix = stream.read(8)
            length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else size
            if prefix == b"version " and size < POINTER_BYTES:
                raise _broken(f"{file} is a pointer of Git LFS, not the file itself (`git lfs pull` brings it)")
            if length > min(size - 8, MAX_HEADER_BYTES):
                raise _broken(f"{file} is truncated or no safetensors file ({size} bytes, its header ends beyond)")
            return stream.read(length), size
    except OSError as error:
        raise _broken(f"{file} cannot be read: {error.strerror}") from error


def _check_metadata(value: Any) -> None:
    """Raises ValueError for metadata that are not text to text, which safetensors refuses to load."""
    if value is not None and not all(isinstance(each, str) for each in value.values()):
        raise ValueError("its __metadata__ holds other values than texts")


def _end(tensors: list[Tensor], start: int) -> int:
    """Where the last tensor ends. Raises ValueError where two share bytes or leave some out: safetensors refuses both."""
    for tensor in sorted(tensors, key=lambda each: (each.start, each.size_bytes)):
        if tensor.start != start:
            raise ValueError(
                f"{tensor.name} lies on another tensor's bytes"
                if tensor.start < start
                else f"bytes before {tensor.name} belong to no tensor"
            )
        start = tensor.start + tensor.size_bytes
    return start


def _tensor(name: str, entry: dict[str, Any], file: Path, base: int) -> Tensor:
    begin, end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    if any(type(each) is not int or each < 0 for each in (begin, end, *shape)) or end < begin:
        raise ValueError(f"{name} has an offset or a size that is no count")
    if not isinstance(entry["dtype"], str):
        raise TypeError(f"{name} has a dtype that is no name")
    bits = DTYPE_BITS.get(entry["dtype"])
    if bits is not None and (end - begin) * 8 != math.prod(shape) * bits:
        raise ValueError(f"{name} takes {end - begin} bytes, which {entry['dtype']}{list(shape)} does not")
    return Tensor(name, entry["dtype"], shape, file, base + begin, end - begin)


def _check_index(folder: Path, tensors: dict[str, Tensor]) -> None:
    named = weight_map(folder)
    lost = [name for name, file in named.items() if name not in tensors or tensors[name].file.name != file]
    if lost:
        raise _broken(
            f"{INDEX} of {folder} names {len(lost)} tensors that are not where it says: {', '.join(lost[:3])}"
        )
    unknown = [name for name in tensors if name not in named]
    if unknown:
        raise _broken(f"{folder} holds {len(unknown)} tensors that {INDEX} does not name: {', '.join(unknown[:3])}")


def weight_map(folder: Path) -> dict[str, str]:
    """Tensor to file, as the index says. Raises CheckpointError."""
    try:
        found = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
        return {str(name): str(file) for name, file in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _broken(f"{folder / INDEX} is not an index with a `weight_map`") from None


def _no_safetensors(folder: Path) -> CheckpointError:
    if _any(folder, PICKLES):
        return CheckpointError(
            f"{folder} has its weights as pickles only, which can run code when they are loaded",
            advice="convert them once, if you trust them: AutoModelForCausalLM.from_pretrained(X).save_pretrained(Y)",
        )
    if _any(folder, ["*.gguf"]):
        return CheckpointError(f"{folder} holds a GGUF file", advice="name the file itself: `model: {gguf: FILE}`")
    return CheckpointError(f"{folder} has no *.safetensors", advice="name the directory that holds the weights")


def _any(folder: Path, patterns: Iterable[str]) -> bool:
    return any(True for pattern in patterns for _ in folder.glob(pattern))


def _broken(message: str) -> CheckpointError:
    return CheckpointError(message, advice="copy or download the checkpoint again: not all of it has arrived")
