"""Fields of config.json under names that nothing reads: near matches of known ones that are missing. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from qgate.inspection.codes import ERROR, WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.scheme import quantization_of
from qgate.schemas.inspection import Finding

FIELD_RENAMED = Code(
    "field-renamed",
    WARNING,
    breaks="engines do not read a field of this name and take a default",
    fix="give the field its own name",
)
QUANTIZATION_FIELD_RENAMED = Code(
    "quantization-field-renamed",
    ERROR,
    breaks="loaders refuse a field of this name in quantization_config",
    fix="give the field its own name",
)

CODES = (FIELD_RENAMED, QUANTIZATION_FIELD_RENAMED)
NEAR = 0.88
"""Similarity (difflib's ratio) of `num_hidden_layer` to `num_hidden_layers` is 0.97, of two known names 0.86 at most."""
CORE = frozenset(
    {
        "architectures", "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings", "rope_theta", "rope_scaling",
        "rope_parameters", "sliding_window", "tie_word_embeddings", "rms_norm_eps", "layer_norm_eps", "hidden_act",
        "bos_token_id", "eos_token_id", "pad_token_id", "attention_bias", "mlp_bias", "quantization_config", "dtype",
        "torch_dtype", "text_config", "num_local_experts", "num_experts", "num_experts_per_tok", "moe_intermediate_size",
    }
)  # fmt: skip
LOOK_ALIKES = frozenset(
    {
        "attention_heads", "boa_token_id", "boi_token_id", "eoa_token_id", "eoi_token_id", "num_experts_per_token",
        "v_head_dim",
    }
)  # fmt: skip
"""Near a name of `CORE`, and fields of their own: XGLM's, Gemma's, Kimi Linear's and DeepSeek's (transformers 5.17)."""
WEIGHTS = frozenset(
    {
        "num_bits", "type", "symmetric", "group_size", "strategy", "block_structure", "dynamic", "actorder",
        "scale_dtype", "zp_dtype", "observer", "observer_kwargs",
    }
)  # fmt: skip
"""Of compressed-tensors' QuantizationArgs, which forbids any other."""
OF_METHOD = {
    "compressed-tensors": frozenset(
        {
            "config_groups", "format", "ignore", "kv_cache_scheme", "quant_method", "quantization_status",
            "sparsity_config", "transform_config", "global_compression_ratio", "version", "run_compressed",
        }
    ),
    "gptq": frozenset(
        {"bits", "group_size", "desc_act", "sym", "lm_head", "dynamic", "checkpoint_format", "quant_method"}
    ),
    "awq": frozenset(
        {
            "bits", "w_bit", "group_size", "q_group_size", "zero_point", "version", "quant_method",
            "modules_to_not_convert",
        }
    ),
    "fp8": frozenset(
        {
            "activation_scheme", "weight_block_size", "quant_method", "ignored_layers", "modules_to_not_convert", "fmt",
        }
    ),
}  # fmt: skip


def check(facts: Facts, baseline: Facts | None) -> Iterator[Finding]:
    """One finding per part of config.json that has such names."""
    moved = renamed(facts, baseline)
    if moved:
        places = [f"config.json: {name}" for name in moved]
        yield FIELD_RENAMED.at(places, f"{next(iter(moved))} is no field, {next(iter(moved.values()))} is missing")
    inside = renamed_in_quantization(facts)
    if inside:
        place, known = next(iter(inside.items()))
        yield QUANTIZATION_FIELD_RENAMED.at(
            [f"config.json: {name}" for name in inside], f"{place} is no field, {known} is missing"
        )


def renamed(facts: Facts, baseline: Facts | None) -> dict[str, str]:
    """Unread names to the known ones that they stand for."""
    theirs = frozenset(baseline.text_config) if baseline is not None else frozenset()
    return _near(facts.text_config, CORE | theirs)


def renamed_in_quantization(facts: Facts) -> dict[str, str]:
    """The same in the quantization_config, where it may no longer be read at all."""
    said = quantization_of(facts.config) or {}
    known = OF_METHOD.get(str(said.get("quant_method")), frozenset())
    found = {f"quantization_config.{name}": near for name, near in _near(said, known).items()}
    groups = said.get("config_groups")
    for key, group in groups.items() if isinstance(groups, Mapping) else ():
        for part in ("weights", "input_activations") if isinstance(group, Mapping) else ():
            inner = group.get(part)
            if isinstance(inner, Mapping):
                found |= {f"{key}.{part}.{name}": near for name, near in _near(inner, WEIGHTS).items()}
    return found


def _near(fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, str]:
    missing = sorted(known - fields.keys())
    found = {}
    for name in fields:
        near = get_close_matches(name, missing, n=1, cutoff=NEAR) if name not in known | LOOK_ALIKES else []
        if near:
            found[name] = near[0]
    return found
