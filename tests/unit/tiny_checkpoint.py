"""Tiny checkpoints for tests: safetensors files written by hand, as the format's page describes them."""

import json
import math
import struct
from pathlib import Path
from typing import Any

from qgate.io.tensors import DTYPE_BITS

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 1,
    "tie_word_embeddings": True,
}
Entries = dict[str, tuple[str, tuple[int, ...]]]
"""Tensor name to dtype and shape."""
PLAIN: Entries = {
    "model.embed_tokens.weight": ("F16", (10, 96)),
    "model.layers.0.self_attn.q_proj.weight": ("F16", (96, 96)),
    "model.layers.0.mlp.down_proj.weight": ("F16", (96, 160)),
    "model.norm.weight": ("F16", (96,)),
}


def write_safetensors(path: Path, entries: Entries, data: dict[str, bytes] | None = None) -> None:
    """A file with these tensors, zeros where `data` has no bytes for one."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, (dtype, shape) in entries.items():
        payload = (data or {}).get(name, bytes(math.prod(shape) * DTYPE_BITS[dtype] // 8))
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(body), len(body) + len(payload)]}
        body += payload
    raw = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + body)


def write_checkpoint(folder: Path, entries: Entries = PLAIN, **config: Any) -> Path:
    """A checkpoint directory with one weight file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    (folder / "tokenizer.json").write_text("{}")
    write_safetensors(folder / "model.safetensors", entries)
    return folder


def write_sharded(folder: Path, shards: dict[str, Entries], weight_map: dict[str, str] | None = None) -> Path:
    """A checkpoint directory with several weight files and an index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    for file, entries in shards.items():
        write_safetensors(folder / file, entries)
    mapping = weight_map or {name: file for file, entries in shards.items() for name in entries}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": mapping}))
    return folder
