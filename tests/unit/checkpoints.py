"""Tiny checkpoints for tests: a config and one safetensors file, written by hand."""

from __future__ import annotations

import json
import struct
from pathlib import Path

COLUMNS = 64


def write(folder: Path, fill: int = 0) -> Path:
    """A directory in Hugging Face format whose bytes depend on `fill`."""
    folder.mkdir(parents=True)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": COLUMNS, "vocab_size": 128}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    size = 2 * COLUMNS * COLUMNS
    tensor = {"dtype": "F16", "shape": [COLUMNS, COLUMNS], "data_offsets": [0, size]}
    header = json.dumps({"model.layers.0.mlp.up_proj.weight": tensor}).encode()
    payload = struct.pack("<Q", len(header)) + header + bytes([fill]) * size
    (folder / "model.safetensors").write_bytes(payload)
    return folder
