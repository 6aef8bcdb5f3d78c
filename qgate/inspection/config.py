"""config.json against the baseline's: architecture, shape, rope, context, dtype, code of its own. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qgate.inspection.codes import ERROR, WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.fields import renamed
from qgate.inspection.vocabulary import EMBEDDING
from qgate.schemas.inspection import Finding

CONFIG_DIFFERS = Code(
    "config-differs",
    WARNING,
    breaks="the model computes something else than the baseline",
    fix="copy the field from the baseline's config.json",
)
CONFIG_SHAPE_DIFFERS = Code(
    "config-shape-differs",
    WARNING,
    breaks="the model has another shape than the baseline: its tensors were not compared",
    fix="copy the field from the baseline's config.json, unless the model was pruned",
)
ROPE_DIFFERS = Code(
    "rope-differs",
    WARNING,
    breaks="positions are read at another scale: long prompts, or all, go wrong",
    fix="copy the rope fields from the baseline's config.json",
)
CONTEXT_DIFFERS = Code(
    "context-differs",
    WARNING,
    breaks="prompts are refused, or accepted, at another length than the baseline's",
    fix="copy the field from the baseline's config.json",
)
FLOAT16_OVERFLOW = Code(
    "float16-overflow",
    WARNING,
    breaks="activations of this model pass 65504, where float16 ends: answers become token 0",
    fix="serve in bfloat16",
)
DTYPE_CAST = Code(
    "dtype-cast",
    WARNING,
    breaks="weights and scales are cast when they are loaded: bfloat16 has 3 binary places less, float16 ends at 65504",
    fix="write the type of the tensors into config.json, unless the cast is meant",
)
DTYPE_UNKNOWN = Code(
    "dtype-unknown",
    ERROR,
    breaks="transformers knows no such type and reads no config.json that names it; vLLM reads it through transformers",
    fix="write float16, bfloat16 or float32",
)
GENERATION_UNREADABLE = Code(
    "generation-unreadable",
    WARNING,
    breaks="sampling defaults, and the tokens that end an answer beside config.json's, are lost",
    fix="copy the baseline's generation_config.json",
)
SAMPLING_DIFFERS = Code(
    "sampling-differs",
    WARNING,
    breaks="servers that take their sampling defaults from generation_config.json (vLLM does) sample otherwise than the "
    "baseline; requests that say all of it, as qgate's do, show nothing of that",
    fix="copy the baseline's generation_config.json",
)
REMOTE_CODE = Code(
    "remote-code",
    WARNING,
    breaks="qgate runs none of a checkpoint's code: the model loads only if the engine knows its architecture",
    fix="take the architecture that the engine has; or read the code and pass --trust-remote-code in the engine's `args`",
)

CODES = (
    CONFIG_DIFFERS,
    CONFIG_SHAPE_DIFFERS,
    ROPE_DIFFERS,
    CONTEXT_DIFFERS,
    FLOAT16_OVERFLOW,
    DTYPE_CAST,
    DTYPE_UNKNOWN,
    GENERATION_UNREADABLE,
    SAMPLING_DIFFERS,
    REMOTE_CODE,
)
SHAPE = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
    "num_experts", "num_local_experts", "moe_intermediate_size",
)  # fmt: skip
CONTEXT = ("max_position_embeddings", "sliding_window", "use_sliding_window", "max_window_layers", "layer_types")
MEANING = (
    "architectures", "model_type", "hidden_act", "hidden_activation", "rms_norm_eps", "layer_norm_eps",
    "tie_word_embeddings", "attention_bias", "mlp_bias", "num_experts_per_tok", "norm_topk_prob", "query_pre_attn_scalar",
    "attn_logit_softcapping", "final_logit_softcapping", "logits_scaling", "embedding_multiplier", "residual_multiplier",
    "attention_multiplier", "partial_rotary_factor",
)  # fmt: skip
LASTING = (
    "architectures", "model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings", "hidden_act", "rms_norm_eps",
)  # fmt: skip
"""Fields that transformers writes whatever they hold: one that is gone was lost, and engines take their default."""
STORED = {"F16": "float16", "BF16": "bfloat16"}
NEEDS_BFLOAT16 = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4", "plamo2"})
"""vLLM's _FLOAT16_NOT_SUPPORTED_MODELS: their activations pass float16's largest number."""
DTYPE = re.compile(r"(b?float(16|32|64)|half|float|double|float8_\w+)")
SAMPLING: Mapping[str, float | None] = {
    "do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": None, "min_p": None, "typical_p": 1.0,
    "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "no_repeat_ngram_size": 0,
    "max_new_tokens": None, "min_new_tokens": None, "num_beams": 1, "suppress_tokens": None, "bad_words_ids": None,
    "forced_bos_token_id": None, "forced_eos_token_id": None,
}  # fmt: skip
"""What each means where it is not said; transformers leaves such values out when it saves. Of `top_k` engines think
differently: 50 in transformers, none in vLLM."""
DEFAULT_THETA = 10_000.0


def check(facts: Facts, baseline: Facts | None) -> Iterator[Finding]:
    """Findings on the config alone, then against the baseline's."""
    yield from _alone(facts)
    cast = _cast(facts)
    if cast is not None and (baseline is None or cast != _cast(baseline)):
        yield DTYPE_CAST.at("config.json: dtype", f"it is {cast[0]}, and the embedding is stored in {cast[1]}")
    if baseline is not None:
        yield from _against(facts, baseline)


def has_another_shape(facts: Facts, baseline: Facts) -> bool:
    """Whether the model is pruned or another one, so that its tensors cannot be held against the baseline's."""
    return bool(_differing(facts, baseline, (*SHAPE, "architectures", "model_type")))


def _alone(facts: Facts) -> Iterator[Finding]:
    config = facts.text_config
    dtype = config.get("dtype", config.get("torch_dtype"))
    if isinstance(dtype, str) and not DTYPE.fullmatch(dtype):
        yield DTYPE_UNKNOWN.at("config.json: dtype", f"it is {dtype!r}")
    if (why := facts.unreadable.get("generation_config.json")) is not None:
        yield GENERATION_UNREADABLE.at("generation_config.json", why)
    if (twice := _theta_twice(config)) is not None:
        yield ROPE_DIFFERS.at("config.json: rope_theta", twice)
    if dtype == "float16" and str(config.get("model_type")) in NEEDS_BFLOAT16:
        yield FLOAT16_OVERFLOW.at("config.json: dtype", f"{config['model_type']} in float16")
    code = facts.config.get("auto_map")
    if isinstance(code, Mapping) and code:
        yield REMOTE_CODE.at(
            "config.json: auto_map", ", ".join(f"{key}: {value}" for key, value in sorted(code.items()))
        )


def _cast(facts: Facts) -> tuple[str, str] | None:
    """The type that config.json says and the one that the embedding is stored in, where they are not the same."""
    said = facts.text_config.get("dtype", facts.text_config.get("torch_dtype"))
    stored = next((STORED.get(header.dtype) for name, header in facts.headers.items() if EMBEDDING.match(name)), None)
    return (said, stored) if stored is not None and said in STORED.values() and said != stored else None


def _against(facts: Facts, baseline: Facts) -> Iterator[Finding]:
    for code, fields in ((CONFIG_SHAPE_DIFFERS, SHAPE), (CONTEXT_DIFFERS, CONTEXT), (CONFIG_DIFFERS, MEANING)):
        differing = _differing(facts, baseline, fields)
        if differing:
            first = differing[0]
            mine, theirs = facts.text_config.get(first), baseline.text_config.get(first)
            yield code.at(
                [f"config.json: {name}" for name in differing], f"{first} is {mine}, the baseline's is {theirs}"
            )
    if lost := _lost(facts.text_config, baseline.config, renamed(facts, baseline).values()):
        detail = f"{lost[0]} is not said, the baseline's is {baseline.config[lost[0]]}"
        yield CONFIG_DIFFERS.at([f"config.json: {name}" for name in lost], detail)
    lengths = [_length(side) for side in (facts, baseline)]
    if lengths[0] != lengths[1]:
        detail = f"it is {lengths[0] or 'none'}, the baseline's is {lengths[1] or 'none'}; vLLM takes prompts up to it"
        yield CONTEXT_DIFFERS.at("tokenizer_config.json: model_max_length", detail)
    mine, theirs = rope(facts.text_config), rope(baseline.text_config)
    if mine != theirs and not renamed(facts, baseline).keys() & _near_rope(facts, baseline):
        yield ROPE_DIFFERS.at("config.json: rope", f"{_told(mine)}, the baseline's {_told(theirs)}")
    odd = [name for name in SAMPLING if _sampling(facts, name) != _sampling(baseline, name)]
    if odd and not facts.unreadable:
        one, other = (side.generation.get(odd[0]) for side in (facts, baseline))
        yield SAMPLING_DIFFERS.at(
            [f"generation_config.json: {name}" for name in odd], f"{odd[0]} is {one}, the baseline's is {other}"
        )


def _lost(mine: Mapping[str, Any], theirs: Mapping[str, Any], renamed: Iterable[str]) -> list[str]:
    """Fields of the baseline that are gone, from `text_config` too, unless what it says is what their absence means."""
    heads, hidden = theirs.get("num_attention_heads"), theirs.get("hidden_size")
    width = hidden / heads if isinstance(heads, int) and isinstance(hidden, int) and heads else None
    absent = {"num_key_value_heads": heads, "head_dim": width}
    gone = [name for name in LASTING if name not in mine and name not in renamed]
    return [name for name in gone if theirs.get(name) not in (None, absent.get(name))]


def _length(facts: Facts) -> int | None:
    """The tokenizer's own limit, where it is below the model's."""
    said, positions = facts.tokenizer.settings.get("model_max_length"), facts.text_config.get("max_position_embeddings")
    is_below = isinstance(said, int) and isinstance(positions, int) and said < positions
    return said if is_below else None


def _sampling(facts: Facts, name: str) -> Any:
    said = facts.generation.get(name)
    return SAMPLING[name] if said is None else said


def _theta_twice(config: Mapping[str, Any]) -> str | None:
    """A base of the positions that is written twice, and differently: transformers 4 reads one, 5 the other."""
    parameters, own = config.get("rope_parameters"), config.get("rope_theta")
    inner = parameters.get("rope_theta") if isinstance(parameters, Mapping) else None
    if isinstance(own, int | float) and isinstance(inner, int | float) and not _equal(own, inner):
        return f"it is {own}, and rope_parameters say {inner}"
    return None


def _near_rope(facts: Facts, baseline: Facts) -> set[str]:
    return {name for name, known in renamed(facts, baseline).items() if known.startswith("rope")}


def _differing(facts: Facts, baseline: Facts, fields: tuple[str, ...]) -> list[str]:
    """Fields that both have, with other values; one that only one of both has may be a default that is not written."""
    mine, theirs = facts.text_config, baseline.text_config
    return [name for name in fields if name in mine and name in theirs and not _equal(mine[name], theirs[name])]


def _equal(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=1e-5)
    return bool(mine == theirs)


def rope(config: Mapping[str, Any]) -> dict[str, Any]:
    """Base and scaling of the positions in one spelling: `rope_theta` and `rope_scaling`, or `rope_parameters`."""
    parameters = config.get("rope_parameters")
    if isinstance(parameters, Mapping) and any(isinstance(value, Mapping) for value in parameters.values()):
        return {name: rope({"rope_parameters": value}) for name, value in sorted(parameters.items())}
    scaling = config.get("rope_scaling")
    chosen = scaling if isinstance(scaling, Mapping) and scaling else parameters  # as transformers 5 chooses
    merged = dict(chosen) if isinstance(chosen, Mapping) else {}
    kind = str(merged.pop("rope_type", merged.pop("type", "default")))
    merged.pop("type", None)
    said = merged.pop("rope_theta", config.get("rope_theta", DEFAULT_THETA))
    theta = said if isinstance(said, int | float) and said else DEFAULT_THETA
    rest = {name: value for name, value in sorted(merged.items()) if value is not None}
    return {"theta": theta, "type": kind, **(rest if kind != "default" else {})}


def _told(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {each}" for name, each in value.items())
