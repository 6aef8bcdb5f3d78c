"""Which norm feeds a layer, by its name, and how it multiplies. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from qgate.inspection.layers import IN_LAYER

NORMS = (
    (re.compile(r"attn\.|attention\."), ("input_layernorm", "ln_1", "attention_norm", "norm1")),
    (
        re.compile(r""),
        ("pre_feedforward_layernorm", "post_attention_layernorm", "ln_2", "ffn_norm", "norm2", "input_layernorm"),
    ),
)
"""Those of the attention, and all others; where both branches stand side by side (Cohere, Phi) they share the first."""
ZERO_CENTERED = frozenset(
    {
        "gemma", "gemma2", "gemma3", "gemma3_text", "minimax_m3_vl_text", "nemotron", "qwen3_5_moe_text", "qwen3_5_text",
        "qwen3_next", "recurrent_gemma", "step3p5", "vaultgemma",
    }
)  # fmt: skip
"""Model types whose norms multiply by one more than their weights (transformers 5.17)."""
FED_BY_NORM = re.compile(
    r"(q|k|v|qkv|q_a|kv_a|gate|up|gate_up)_proj(_with_mqa)?$|\.(w1|w3|c_fc|c_attn|fc1|dense_h_to_4h)$"
    r"|linear_attn\.in_proj\w*$|(mlp|moe)\.(gate|router|shared_expert_gate)$"
)
NEXT = {"v_proj": "o_proj", "up_proj": "down_proj", "w3": "w2"}
"""Layers whose rows AWQ scales against the next one's columns."""
SCALED = re.compile(rf"\.(({'|'.join(NEXT)})\.bias|(?!(q|k)_(layer)?norm\.)\w*(norm|ln_)\w*\.(weight|bias))$")
"""Norms of queries and keys feed no layer."""
NORM = re.compile(r"(^|[._])norm\.weight$|layernorm\.weight$")


def norms_before(module: str) -> Iterator[str]:
    """Names that the norm's weights may have, the likeliest first; none where no norm feeds the layer directly."""
    place = IN_LAYER.match(module)
    if place is not None and FED_BY_NORM.search(module):
        names = next(names for pattern, names in NORMS if pattern.search(place[3]))
        yield from (f"{place[1]}{place[2]}.{norm}.weight" for norm in names)


def offset(text_config: Mapping[str, Any]) -> int:
    """What is added to a norm's weights before they multiply."""
    return int(str(text_config.get("model_type")) in ZERO_CENTERED)


def is_scaled(name: str) -> bool:
    """Whether quantizers may move scales into or out of this vector: a norm that feeds layers, a bias of `NEXT`'s."""
    return SCALED.search(name) is not None
