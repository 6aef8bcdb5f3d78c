"""What a model cannot be without, where no baseline says it: experts by number, embedding, norms. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from qgate.inspection.codes import WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.inputs import FED_BY_RMS_NORM
from qgate.inspection.layers import EXPERT
from qgate.inspection.misfits import IN_STACK
from qgate.inspection.tensors import TENSOR_MISSING
from qgate.inspection.vocabulary import generates
from qgate.schemas.inspection import Finding

TENSOR_NAMES_WRAPPED = Code(
    "tensor-names-wrapped",
    WARNING,
    breaks="loaders look for these tensors without the prefix of what wrapped the model when it was saved",
    fix="save the model that was wrapped (PEFT: merge_and_unload), or take the prefix off",
)

CODES = (TENSOR_NAMES_WRAPPED,)
WRAPPER = re.compile(r"^(base_model\.model|module|_orig_mod|_fsdp_wrapped_module)\.")
"""PEFT's, DistributedDataParallel's, torch.compile's, FSDP's."""
NUM_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
TWO_NORMS = FED_BY_RMS_NORM - {"cohere", "olmo"}
"""Model types whose layers have both of `NORMS`."""
BIASED = {"qwen2": ("q_proj", "k_proj", "v_proj"), "qwen2_moe": ("q_proj", "k_proj", "v_proj")}
"""Model types whose layers have these biases."""
NORMS = ("input_layernorm", "post_attention_layernorm")


def check(facts: Facts) -> Iterator[Finding]:
    """A finding for names, one for experts, and one for the rest."""
    if wrapped := [name for name in facts.headers if WRAPPER.match(name)]:
        yield TENSOR_NAMES_WRAPPED.at(wrapped, f"{len(wrapped)} of {len(facts.headers)} tensors have such a name")
    if (said := next((facts.text_config[name] for name in NUM_EXPERTS if name in facts.text_config), None)) is not None:
        missing = _experts(facts, said) if isinstance(said, int) and not facts.is_uneven else []
        if missing:
            yield TENSOR_MISSING.at(missing, f"the config says {said} experts, and others are there")
    if str(facts.text_config.get("model_type")) in TWO_NORMS and generates(facts) and not facts.config.get("auto_map"):
        gone = [name for name in _wanted(facts) if name not in facts.headers]
        if gone:
            yield TENSOR_MISSING.at(gone, f"every {facts.text_config['model_type']} model has it")


def _experts(facts: Facts, said: int) -> list[str]:
    """Those that are not there beside others of their layer."""
    present: dict[str, set[int]] = defaultdict(set)
    for name in facts.headers:
        if (expert := EXPERT.search(name)) is not None:
            present[name[: expert.start(1)]].add(int(expert[1]))
    return [f"{place}{number}" for place, numbers in present.items() for number in range(said) if number not in numbers]


def _wanted(facts: Facts) -> Iterator[str]:
    """Of the stack whose attention is there."""
    modules = {name.rpartition(".")[0] for name in facts.headers}
    layers = {
        name[: place.start(1)] for name in facts.headers if (place := IN_STACK.match(name)) and ".self_attn." in name
    }
    for root in sorted({layer[: layer.index("layers.")] for layer in layers}):
        yield f"{root}norm.weight"
        if "lm_head.weight" not in facts.headers and f"{root}embed_tokens" not in modules:
            yield f"{root}embed_tokens.weight"
    biased = BIASED.get(str(facts.text_config.get("model_type")), ()) if facts.text_config.get("qkv_bias", True) else ()
    for layer in sorted(layers):
        yield from (f"{layer}{norm}.weight" for norm in NORMS)
        yield from (f"{layer}self_attn.{name}.bias" for name in biased if f"{layer}self_attn.{name}" in modules)
