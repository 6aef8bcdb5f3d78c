"""Which norm feeds a layer, by its name, and how it multiplies. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from qgate.inspection.layers import IN_LAYER

NORMS = (
    (re.compile(r"attn\.|attention\."), ("input_layernorm", "ln_1", "attention_norm", "norm1")),
    (re.compile(r""), ("pre_feedforward_layernorm", "post_attention_layernorm", "ln_2", "ffn_norm", "norm2")),
)
"""Those of the attention, and all others."""
FED_BY_NORM = re.compile(
    r"(q|k|v|qkv|q_a|kv_a|gate|up|gate_up)_proj(_with_mqa)?$|\.(w1|w3|c_fc|c_attn|fc1|dense_h_to_4h)$|(mlp|moe)\.(gate|router)$"
)
NEXT = {"v_proj": "o_proj", "up_proj": "down_proj", "w3": "w2"}
"""Layers whose rows AWQ scales against the next one's columns."""


def norms_before(module: str) -> Iterator[str]:
    """Names that the norm's weights may have, the likeliest first; none where no norm feeds the layer directly."""
    place = IN_LAYER.match(module)
    if place is not None and FED_BY_NORM.search(module):
        names = next(names for pattern, names in NORMS if pattern.search(place[3]))
        yield from (f"{place[1]}{place[2]}.{norm}.weight" for norm in names)


def offset(config: Mapping[str, Any]) -> int:
    """Gemma's norms multiply by one more than their weights."""
    return 1 if str(config.get("model_type", "")).startswith("gemma") else 0


def is_scaled(name: str) -> bool:
    """Whether quantizers may move scales into or out of this vector: a norm that feeds layers, a bias of `NEXT`'s."""
    parts = name.split(".")
    return len(parts) > 1 and parts[-2] in {*NEXT, *(norm for _, norms in NORMS for norm in norms)}
