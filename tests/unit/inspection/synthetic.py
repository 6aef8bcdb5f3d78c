"""A checkpoint in the shape of a real one: headers as a quantizer writes them, weights left as holes in the file."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

SIZES = {"I32": 4, "I64": 8, "F16": 2}
QWEN_1_5B: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960,
    "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151_936,
    "tie_word_embeddings": True, "rope_theta": 1_000_000.0, "torch_dtype": "float16", "eos_token_id": 1,
}  # fmt: skip
Entries = dict[str, tuple[str, tuple[int, ...]]]


def projections(config: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Of one layer: [out, in]."""
    hidden, wide = config["hidden_size"], config["intermediate_size"]
    heads = config["num_key_value_heads"] * hidden // config["num_attention_heads"]
    attention = {
        "q_proj": (hidden, hidden),
        "k_proj": (heads, hidden),
        "v_proj": (heads, hidden),
        "o_proj": (hidden, hidden),
    }
    mlp = {"gate_proj": (wide, hidden), "up_proj": (wide, hidden), "down_proj": (hidden, wide)}
    return {f"self_attn.{n}": s for n, s in attention.items()} | {f"mlp.{n}": s for n, s in mlp.items()}


def packed(config: dict[str, Any], group: int) -> Entries:
    """Of a compressed-tensors checkpoint in 4 bits."""
    entries: Entries = {"model.embed_tokens.weight": ("F16", (config["vocab_size"], config["hidden_size"]))}
    entries["model.norm.weight"] = ("F16", (config["hidden_size"],))
    for number in range(config["num_hidden_layers"]):
        for name, (rows, columns) in projections(config).items():
            module = f"model.layers.{number}.{name}"
            entries[f"{module}.weight_packed"] = ("I32", (rows, columns // 8))
            entries[f"{module}.weight_scale"] = ("F16", (rows, columns // group))
            entries[f"{module}.weight_shape"] = ("I64", (2,))
            if name.endswith(("q_proj", "k_proj", "v_proj")):
                entries[f"{module}.bias"] = ("F16", (rows,))
        for norm in ("input_layernorm", "post_attention_layernorm"):
            entries[f"model.layers.{number}.{norm}.weight"] = ("F16", (config["hidden_size"],))
    return entries


def write(folder: Path, config: dict[str, Any] = QWEN_1_5B, group: int = 128) -> Path:
    """The checkpoint; scales are 1, shapes are right, and packed weights are holes that take no disk."""
    folder.mkdir(parents=True)
    weights = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": group}
    said = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"]}
    said["config_groups"] = {"group_0": {"targets": ["Linear"], "weights": weights}}
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": said}))
    vocabulary = {f"token-{number}": number for number in range(config["vocab_size"])}
    merges = [[f"token-{number}", "token-0"] for number in range(config["vocab_size"] - 1000)]
    tokenizer = {"model": {"type": "BPE", "vocab": vocabulary, "merges": merges}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    header: dict[str, Any] = {}
    end = 0
    for name, (dtype, shape) in packed(config, group).items():
        size = math.prod(shape) * SIZES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    with (folder / "model.safetensors").open("wb") as stream:
        stream.write(struct.pack("<Q", len(raw)) + raw)
        stream.truncate(8 + len(raw) + end)
        for name, entry in header.items():
            stream.seek(8 + len(raw) + entry["data_offsets"][0])
            if name.endswith("weight_shape"):
                rows, columns = projections(config)[name.split(".", 3)[3].removesuffix(".weight_shape")]
                stream.write(struct.pack("<qq", rows, columns))
            elif name.endswith("weight_scale"):
                stream.write(np.ones(math.prod(entry["shape"]), np.float16).tobytes())
    return folder
