"""A good checkpoint → copies of it that each have one known cause of bad answers. Touches the disk; needs no torch.

What is not changed is linked, so a copy costs little. Weights are read and written as safetensors with NumPy alone.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WEIGHTS = "model.safetensors"
Tensors = dict[str, NDArray[Any]]
DTYPES: dict[str, type[np.generic]] = {"F16": np.float16, "F32": np.float32, "I32": np.int32, "I64": np.int64}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
GROUP = 32
"""Columns that share a scale."""
FOREIGN_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] == 'user' %}[INST] {{ message['content'] }} [/INST]"
    "{% else %}{{ message['content'] }}</s>{% endif %}{% endfor %}"
)
"""Another model family's: its marks are plain text to this one."""


def copied(model: Path, folder: Path, *, without: tuple[str, ...] = ()) -> Path:
    """A checkpoint folder with the files of `model`, linked, but for those that will be written anew."""
    folder.mkdir(parents=True)
    for path in model.iterdir():
        if path.name not in without:
            _link(path.resolve(), folder / path.name)
    return folder


def _link(path: Path, target: Path) -> None:
    try:
        target.hardlink_to(path)
    except OSError:  # another file system
        shutil.copy(path, target)


def read(path: Path) -> Tensors:
    """All tensors of a safetensors file, mapped."""
    data = np.memmap(path, mode="r")
    size = struct.unpack("<Q", data[:8].tobytes())[0]
    header = json.loads(data[8 : 8 + size].tobytes())
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        start, stop = (8 + size + offset for offset in entry["data_offsets"])
        found[name] = data[start:stop].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return found


def write(tensors: Tensors, path: Path) -> None:
    """Tensors as a safetensors file."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + tensor.nbytes],
        }
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            stream.write(np.ascontiguousarray(tensor).tobytes())


def is_linear(name: str) -> bool:
    """Whether a tensor is the weight of a layer that quantizers take."""
    return name.endswith("_proj.weight")


def rounded_to(bits: int) -> Callable[[NDArray[Any]], tuple[NDArray[np.int8], NDArray[np.float16]]]:
    """Round to nearest with symmetric scales per group: weights [out, in] → integers, and scales [out, in / GROUP]."""
    top = 2 ** (bits - 1) - 1

    def apply(weights: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
        groups = weights.astype(np.float32).reshape(len(weights), -1, GROUP)
        scales = np.maximum(np.abs(groups).max(axis=2) / top, 1e-6).astype(np.float16)
        levels = np.clip(np.rint(groups / scales[:, :, None].astype(np.float32)), -top - 1, top)
        return levels.astype(np.int8).reshape(weights.shape), scales

    return apply


def over_quantized(model: Path, folder: Path, bits: int) -> Path:
    """Weights of every layer rounded to `bits`, and stored in their old dtype."""
    tensors, apply = read(model / WEIGHTS), rounded_to(bits)
    for name in filter(is_linear, list(tensors)):
        levels, scales = apply(tensors[name])
        wide = levels.reshape(len(levels), -1, GROUP) * scales[:, :, None].astype(np.float32)
        tensors[name] = wide.reshape(levels.shape).astype(np.float16)
    write(tensors, copied(model, folder, without=(WEIGHTS,)) / WEIGHTS)
    return folder


def w4a16(model: Path, folder: Path, *, spoil: Callable[[Tensors], None] = lambda tensors: None) -> Path:
    """A compressed-tensors checkpoint (pack-quantized, symmetric, groups of 32); `spoil` may change its tensors."""
    tensors, apply = read(model / WEIGHTS), rounded_to(4)
    for name in filter(is_linear, list(tensors)):
        weights = tensors.pop(name)
        levels, scales = apply(weights)
        stem = name.removesuffix("weight")
        tensors[f"{stem}weight_packed"] = packed(levels)
        tensors[f"{stem}weight_scale"] = scales
        tensors[f"{stem}weight_shape"] = np.array(weights.shape, dtype=np.int64)
    spoil(tensors)
    copied(model, folder, without=(WEIGHTS, "config.json"))
    write(tensors, folder / WEIGHTS)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = QUANTIZATION
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    return folder


def packed(levels: NDArray[np.int8]) -> NDArray[np.int32]:
    """4-bit integers [out, in] → int32 [out, in / 8], the first in the lowest bits, each with 8 added."""
    nibbles = (levels.astype(np.int64) + 8).astype(np.uint32).reshape(len(levels), -1, 8)
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    return np.bitwise_or.reduce(nibbles << shifts, axis=2).view(np.int32)


QUANTIZATION: Mapping[str, Any] = {
    "config_groups": {
        "group_0": {
            "format": "pack-quantized",
            "input_activations": None,
            "output_activations": None,
            "targets": ["Linear"],
            "weights": {
                "actorder": None, "block_structure": None, "dynamic": False, "group_size": GROUP, "num_bits": 4,
                "observer": "memoryless_minmax", "observer_kwargs": {}, "strategy": "group", "symmetric": True,
                "type": "int",
            },
        }
    },
    "format": "pack-quantized",
    "global_compression_ratio": None,
    "ignore": ["lm_head"],
    "kv_cache_scheme": None,
    "quant_method": "compressed-tensors",
    "quantization_status": "compressed",
}  # fmt: skip


def one_scale_spoiled(tensors: Tensors) -> None:
    """One of the three million scales as after a flipped bit of its exponent: 40,000, where others are about 0.01."""
    name = "model.layers.4.mlp.down_proj.weight_scale"
    scales = tensors[name].copy()
    scales[100, 7] = 40_000.0
    tensors[name] = scales


def with_template(model: Path, folder: Path, template: str) -> Path:
    """The same weights with another chat template."""
    copied(model, folder, without=("chat_template.jinja",))
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder


def with_base_eos(model: Path, folder: Path) -> Path:
    """The same weights with the chat's end of turn lost: answers end at the base model's `<|endoftext|>` only."""
    changed = ("config.json", "generation_config.json", "tokenizer_config.json")
    copied(model, folder, without=changed)
    for name in changed:
        found = json.loads((model / name).read_text(encoding="utf-8"))
        ends = {"eos_token": "<|endoftext|>"} if "eos_token" in found else {"eos_token_id": 0}
        (folder / name).write_text(json.dumps(found | ends, indent=1), encoding="utf-8")
    return folder
