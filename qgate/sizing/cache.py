"""A model's config.json in, the bytes of its KV cache per token and per sequence out, on one of the GPUs that share it.

Sources are vLLM's own (0.26): kv heads and head size from transformers_utils/model_arch_config_convertor.py, bytes of a
page from v1/kv_cache_interface.py (FullAttentionSpec, MLAAttentionSpec, SlidingWindowSpec), how layers of several kinds
share one pool from v1/core/kv_cache_utils.py (_get_kv_cache_groups_uniform_page_size).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BLOCK_TOKENS = 16
"""Tokens in a block: vLLM's default (config/cache.py). What a sequence holds is rounded up to it."""
UNEVEN = 1.5
"""Kinds of layers whose numbers differ by less are padded to the larger number; else the smaller is the group's size."""
KEPT_WHOLE = frozenset({"full_attention", "attention"})
WINDOWED = frozenset({"sliding_attention", "sliding_window_attention", "chunked_attention"})


@dataclass(frozen=True)
class Layers:
    """Layers of one kind, padding included. `window`: tokens of a sequence that each keeps; None: all."""

    num: int
    window: int | None


@dataclass(frozen=True)
class CacheShape:
    """What a sequence keeps in the KV cache."""

    layer_bytes: int
    """Bytes that one layer keeps of one token."""
    layers: tuple[Layers, ...]
    unknown: tuple[str, ...] = ()
    """Kinds of layers that keep a state which is not counted here."""

    @property
    def shortest_window(self) -> float:
        """Tokens up to which every layer keeps everything."""
        return min((kind.window for kind in self.layers if kind.window is not None), default=math.inf)

    @property
    def token_bytes(self) -> int:
        """Bytes of one token while the sequence is shorter than every window."""
        return self.layer_bytes * sum(kind.num for kind in self.layers)

    def sequence_bytes(self, num_tokens: int, in_flight: int = 0) -> int:
        """Bytes of a sequence of so many tokens: whole blocks, and one more where a window slides over their edges.

        `in_flight`: tokens of steps that are not settled yet, which a window keeps beside its own.
        """
        blocks = 0
        for kind in self.layers:
            kept = num_tokens if kind.window is None else kind.window + in_flight
            if num_tokens <= kept:
                blocks += kind.num * math.ceil(num_tokens / BLOCK_TOKENS)
            else:
                blocks += kind.num * (math.ceil(kept / BLOCK_TOKENS) + 1)
        return blocks * BLOCK_TOKENS * self.layer_bytes


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's part of a config.json, which multimodal models nest."""
    nested = config.get("text_config")
    return {**config, **nested} if isinstance(nested, Mapping) else config


def cache_shape(config: Mapping[str, Any], *, kv_dtype: str = "auto", tensor_parallel: int = 1) -> CacheShape:
    """The KV cache of a model on one of `tensor_parallel` GPUs. Raises KeyError where config.json lacks a size."""
    text = text_config(config)
    kinds = Counter(_kinds(text))
    known = {kind: num for kind, num in kinds.items() if kind in KEPT_WHOLE | WINDOWED}
    return CacheShape(
        layer_bytes=_layer_bytes(text, kv_dtype, tensor_parallel),
        layers=_grouped({kind: (num, _window(text, kind)) for kind, num in known.items()}),
        unknown=tuple(sorted(set(kinds) - set(known))),
    )


def num_layers(text: Mapping[str, Any]) -> int:
    """Transformer layers. Raises KeyError."""
    return int(first(text, "num_hidden_layers", "n_layer", "num_layers"))


def num_heads(text: Mapping[str, Any]) -> int:
    """Attention heads. Raises KeyError."""
    return int(first(text, "num_attention_heads", "n_head", "num_heads"))


def num_kv_heads(text: Mapping[str, Any]) -> int:
    """Heads of keys and values: 1 for multi-query attention, as many as attention heads where nothing is said."""
    if text.get("multi_query"):
        return 1
    names = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
    return int(next((text[name] for name in names if text.get(name) is not None), num_heads(text)))


def head_size(text: Mapping[str, Any]) -> int:
    """Numbers in one head. Raises KeyError."""
    return int(text.get("head_dim") or first(text, "hidden_size", "n_embd") // num_heads(text))


def is_mla(text: Mapping[str, Any]) -> bool:
    """Whether attention is DeepSeek's multi-head latent attention: one compressed vector instead of keys and values."""
    return text.get("kv_lora_rank") is not None and text.get("qk_rope_head_dim") is not None


def first(config: Mapping[str, Any], *names: str) -> Any:
    """The first of these fields that is there. Raises KeyError."""
    for name in names:
        if config.get(name) is not None:
            return config[name]
    raise KeyError(f"config.json has no {' or '.join(names)}")


def _layer_bytes(text: Mapping[str, Any], kv_dtype: str, tensor_parallel: int) -> int:
    """Keys and values: 2 × heads × size. MLA: kv_lora_rank + qk_rope_head_dim, once, and on every GPU the same."""
    if is_mla(text):
        return int((text["kv_lora_rank"] + text["qk_rope_head_dim"]) * _number_bytes(kv_dtype))
    heads = max(1, num_kv_heads(text) // tensor_parallel)  # fewer heads than GPUs: each GPU keeps one
    scales = 8 if kv_dtype.endswith("per_token_head") else 0
    return int(heads * (2 * head_size(text) * _number_bytes(kv_dtype) + scales))


def _number_bytes(kv_dtype: str) -> float:
    if kv_dtype.startswith("int4"):
        return 0.5
    if kv_dtype == "nvfp4":
        return 0.5 + 1 / 16
    return 1 if kv_dtype.startswith(("fp8", "int8")) else 2


def _kinds(text: Mapping[str, Any]) -> list[str]:
    """The kind of each layer: as `layer_types` says, else by the fields that older configs have."""
    total = num_layers(text)
    if isinstance(text.get("layer_types"), list):
        return [str(kind) for kind in text["layer_types"][:total]]
    if text.get("sliding_window") is None or text.get("use_sliding_window") is False:
        return ["full_attention"] * total
    if pattern := text.get("sliding_window_pattern"):  # Gemma 3, Cohere 2: each pattern's last layer sees everything
        return ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention" for i in range(total)]
    if text.get("model_type") == "gemma2":
        return ["full_attention" if i % 2 else "sliding_attention" for i in range(total)]
    return ["sliding_attention"] * total


def _window(text: Mapping[str, Any], kind: str) -> int | None:
    if kind in KEPT_WHOLE:
        return None
    window = text.get("attention_chunk_size" if kind == "chunked_attention" else "sliding_window")
    return int(window) if window else None


def _grouped(kinds: Mapping[str, tuple[int, int | None]]) -> tuple[Layers, ...]:
    """Layers by kind, padded as vLLM pads them: the kinds share one pool of equal groups of layers."""
    if not kinds:
        return ()
    fewest, most = min(num for num, _ in kinds.values()), max(num for num, _ in kinds.values())
    size = most if most < fewest * UNEVEN else fewest
    return tuple(Layers(math.ceil(num / size) * size, window) for num, window in kinds.values())
