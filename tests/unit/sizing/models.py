"""Published models as their config.json describes them, with the shapes of their tensors (not their weights)."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgate.sizing.model import Model


@dataclass(frozen=True)
class Shape:
    shape: tuple[int, ...]
    dtype: str = "BF16"

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * {"BF16": 2, "F16": 2, "F32": 4, "I32": 4, "I8": 1}[self.dtype]


LLAMA_3_8B: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14_336, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128_256, "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}  # fmt: skip
QWEN_2_5_7B: dict[str, Any] = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18_944, "num_attention_heads": 28,
    "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152_064, "sliding_window": 131_072,
    "use_sliding_window": False, "max_window_layers": 28, "tie_word_embeddings": False,
}  # fmt: skip
MISTRAL_7B_V01: dict[str, Any] = {
    "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14_336, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 32_000, "sliding_window": 4096,
    "tie_word_embeddings": False,
}  # fmt: skip
DEEPSEEK_V2_LITE: dict[str, Any] = {
    "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10_944, "moe_intermediate_size": 1408,
    "num_attention_heads": 16, "num_hidden_layers": 27, "num_key_value_heads": 16, "kv_lora_rank": 512,
    "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64,
    "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "vocab_size": 102_400,
    "tie_word_embeddings": False,
}  # fmt: skip
SMOLLM2_135M: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9,
    "num_hidden_layers": 30, "num_key_value_heads": 3, "vocab_size": 49_152, "tie_word_embeddings": True,
}  # fmt: skip


def llama_like(config: dict[str, Any], *, dtype: str = "BF16", bias: bool = False) -> dict[str, Shape]:
    """Tensors of a Llama, Qwen 2 (with `bias`) or Mistral."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = hidden // config["num_attention_heads"]
    kv = config["num_key_value_heads"] * head
    found = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    if not config["tie_word_embeddings"]:
        found["lm_head.weight"] = (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        found |= {
            f"{at}.self_attn.q_proj.weight": (hidden, hidden), f"{at}.self_attn.k_proj.weight": (kv, hidden),
            f"{at}.self_attn.v_proj.weight": (kv, hidden), f"{at}.self_attn.o_proj.weight": (hidden, hidden),
            f"{at}.mlp.gate_proj.weight": (inner, hidden), f"{at}.mlp.up_proj.weight": (inner, hidden),
            f"{at}.mlp.down_proj.weight": (hidden, inner), f"{at}.input_layernorm.weight": (hidden,),
            f"{at}.post_attention_layernorm.weight": (hidden,),
        }  # fmt: skip
        if bias:
            found |= {
                f"{at}.self_attn.q_proj.bias": (hidden,), f"{at}.self_attn.k_proj.bias": (kv,),
                f"{at}.self_attn.v_proj.bias": (kv,),
            }  # fmt: skip
    return {name: Shape(shape, dtype) for name, shape in found.items()}


def w4a16(tensors: dict[str, Shape], group: int) -> dict[str, Shape]:
    """The same with 4-bit weights as compressed-tensors packs them: eight to an I32, a scale for each group."""
    found: dict[str, Shape] = {}
    for name, tensor in tensors.items():
        if ".layers." not in name or len(tensor.shape) < 2:
            found[name] = tensor
            continue
        rows, columns = tensor.shape
        found[f"{name}_packed"] = Shape((rows, columns // 8), "I32")
        found[f"{name}_scale"] = Shape((rows, columns // group), tensor.dtype)
    return found


def model(config: dict[str, Any], tensors: dict[str, Shape], group_size: int | None = None) -> Model:
    return Model(config, tensors, {name: tensor.shape for name, tensor in tensors.items()}, group_size)


SMALL = SMOLLM2_135M | {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 8192}


def write_checkpoint(folder: Path, config: dict[str, Any] = SMALL) -> Path:
    """A checkpoint whose weight file is all hole: headers as they should be, no bytes behind them."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    entries: dict[str, Any] = {}
    end = 0
    for name, tensor in llama_like(config, dtype="F16").items():
        entries[name] = {"dtype": "F16", "shape": list(tensor.shape), "data_offsets": [end, end + tensor.size_bytes]}
        end += tensor.size_bytes
    header = json.dumps(entries).encode()
    with (folder / "model.safetensors").open("wb") as stream:
        stream.write(struct.pack("<Q", len(header)) + header)
        stream.truncate(8 + len(header) + end)
    return folder
