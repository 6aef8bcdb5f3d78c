"""A checkpoint's config.json and tensors in, the first tensor whose shape is not what the config makes it out.

Only for plain weights of decoders in the Llama family's naming, and only to explain a failure: what is not known here is
left out, not refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from qgate.sizing.cache import head_size, is_mla, num_heads, num_kv_heads, text_config
from qgate.sizing.weights import PLAIN, Stored

_KNOWN = re.compile(
    r"(?:^|\.)(?:self_attn\.(?P<attention>[qkvo])_proj|(?P<mlp>mlp\.(?:gate|up|down))_proj|(?P<embedding>embed_tokens|lm_head)"
    r"|layers\.\d+\.(?P<norm>input_layernorm|post_attention_layernorm))\.weight$"
)


def misshapen(config: Mapping[str, Any], tensors: Mapping[str, Stored]) -> str | None:
    """`NAME is [a, b], config.json makes it [c, d]`, or None where nothing is wrong that is known."""
    text = text_config(config)
    for name, tensor in sorted(tensors.items()):
        wanted = _shape(name, text) if tensor.dtype in PLAIN else None
        if wanted is not None and tensor.shape != wanted:
            return f"{name} is {list(tensor.shape)}, config.json makes it {list(wanted)}"
    return None


def _shape(name: str, text: Mapping[str, Any]) -> tuple[int, ...] | None:
    found = _KNOWN.search(name)
    if found is None or is_mla(text):
        return None
    try:
        hidden, inner, vocabulary = (int(text[key]) for key in ("hidden_size", "intermediate_size", "vocab_size"))
        queries, keys = num_heads(text) * head_size(text), num_kv_heads(text) * head_size(text)
    except (KeyError, TypeError):
        return None
    if kind := found["attention"]:
        return {"q": (queries, hidden), "o": (hidden, queries)}.get(kind, (keys, hidden))
    if kind := found["mlp"]:
        return (hidden, inner) if kind == "mlp.down" else (inner, hidden)
    return (vocabulary, hidden) if found["embedding"] else (hidden,)
