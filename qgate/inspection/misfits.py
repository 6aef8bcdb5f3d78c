"""config.json's heads and widths against the projections that are stored. Pure.

Of the architectures named here transformers and vLLM make a query projection of `num_attention_heads * head_dim` rows, of
others that have one (gated, latent or per-layer attention) something else. What fits by chance, twice the heads of half
the width, only a baseline shows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qgate.inspection.codes import ERROR, Code
from qgate.inspection.facts import FLOATS, Facts
from qgate.inspection.layers import Layer
from qgate.schemas.inspection import Finding

CONFIG_MISFIT = Code(
    "config-misfit",
    ERROR,
    breaks="loaders make layers of another size than the tensors have, and refuse them",
    fix="take config.json from the model that these weights are",
)

CODES = (CONFIG_MISFIT,)
HEAD_DIM: Mapping[str, int | None] = {
    "cohere": None, "ernie4_5": 128, "gemma": 256, "gemma2": 256, "gemma3_text": 256, "granite": None, "llama": None,
    "ministral3": 128, "mistral": None, "mixtral": None, "olmo": None, "olmo2": None, "olmo3": None, "qwen2": None,
    "qwen2_moe": None, "qwen3": 128, "qwen3_moe": None, "smollm3": None, "starcoder2": None,
}  # fmt: skip
"""Model types of plain attention to what `head_dim` is where it is not said; None: hidden_size / num_attention_heads."""
IN_STACK = re.compile(r"^(?:model\.|language_model\.)*layers\.\d+\.(.+)$")
HIDDEN, WIDE = ("hidden_size",), ("intermediate_size",)
QUERIES, KEYS = ("num_attention_heads", "head_dim"), ("num_key_value_heads", "head_dim")
SIDES = {
    "self_attn.q_proj": (QUERIES, HIDDEN), "self_attn.k_proj": (KEYS, HIDDEN), "self_attn.v_proj": (KEYS, HIDDEN),
    "self_attn.o_proj": (HIDDEN, QUERIES), "mlp.gate_proj": (WIDE, HIDDEN), "mlp.up_proj": (WIDE, HIDDEN),
    "mlp.down_proj": (HIDDEN, WIDE),
}  # fmt: skip
"""Projection to the fields whose products are its rows and its columns."""


def check(facts: Facts, layers: Sequence[Layer]) -> Iterator[Finding]:
    """A finding where a projection has one size in every layer, and config.json another; single ones are told elsewhere."""
    said = _said(facts)
    wrong: dict[str, str] = {}
    for place, sizes in (_stored(facts, layers) if said else {}).items():
        if len(sizes) > 1:
            continue
        for side, fields, stored in zip(("rows", "columns"), SIDES[place], *sizes, strict=True):
            if (wanted := _product(said, fields)) not in {None, stored}:
                told = " and ".join(f"{name} {said[name]}" for name in fields)
                wrong[f"layers.*.{place}"] = f"it has {stored} {side}, {told} make {wanted}"
    if wrong:
        yield CONFIG_MISFIT.at(list(wrong), next(iter(wrong.values())))


def _said(facts: Facts) -> dict[str, Any]:
    """config.json's sizes, head_dim among them; empty where the architecture may have others."""
    config = facts.text_config
    if (kind := str(config.get("model_type"))) not in HEAD_DIM or facts.config.get("auto_map"):
        return {}
    heads, hidden = config.get("num_attention_heads"), config.get("hidden_size")
    default = HEAD_DIM[kind]
    if default is None and isinstance(heads, int) and isinstance(hidden, int) and heads > 0:
        default = hidden // heads
    return {**config, "head_dim": config.get("head_dim") or default}


def _product(said: Mapping[str, Any], fields: tuple[str, ...]) -> int | None:
    """None where one of them is not said."""
    found = 1
    for name in fields:
        if not isinstance(value := said.get(name), int):
            return None
        found *= value
    return found


def _stored(facts: Facts, layers: Sequence[Layer]) -> dict[str, set[tuple[int, int]]]:
    """Projection (`self_attn.q_proj`) to the sizes that it has over the layers."""
    sizes = {layer.module: (layer.rows, layer.columns) for layer in layers}
    for name, header in facts.headers.items():
        if name.endswith(".weight") and header.dtype in FLOATS and len(header.shape) == 2:
            sizes[name.removesuffix(".weight")] = (header.shape[0], header.shape[1])
    found: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for module, size in sizes.items():
        place = IN_STACK.match(module)
        if place is not None and place[1] in SIDES:
            found[place[1]].add(size)
    return found
