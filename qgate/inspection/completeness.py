"""Whole layers and plain tensors: everything that the model, its siblings or the baseline have is there. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from qgate.inspection.codes import NOTE, WARNING, Code
from qgate.inspection.facts import Facts, Header
from qgate.inspection.layers import EXPERT, FUSED, IN_LAYER
from qgate.inspection.tensors import COMPANIONS, TENSOR_MISSING, TENSOR_SHAPE, TENSOR_UNEXPECTED
from qgate.schemas.inspection import Finding

BIAS_UNEXPECTED = Code(
    "bias-unexpected",
    WARNING,
    breaks="engines drop biases that the architecture does not have: what they hold is lost",
    fix="remove them where they are zero; else find out which model this is",
)
BIAS_ZERO = Code(
    "bias-zero",
    NOTE,
    breaks="nothing: biases that the architecture does not have, all zero, are dropped",
    fix="remove them to save space",
)
TENSOR_NAMES_DIFFER = Code(
    "tensor-names-differ",
    WARNING,
    breaks="most of the baseline's tensors have other names here: nothing could be compared with it",
    fix="name the baseline that this checkpoint was made from",
)

CODES = (BIAS_UNEXPECTED, BIAS_ZERO, TENSOR_NAMES_DIFFER)
BESIDE = re.compile(rf"\.({'|'.join(COMPANIONS)}|weight_packed|qweight|\w+_scale|\w+_zero_point|\w+_global_scale)$")
BUFFERS = re.compile(r"(rotary_emb\.inv_freq|\.(attn|attention)\.(masked_)?bias|position_ids)$|(^|\.)mtp(_\w+)?\.")
"""Saved by old versions of transformers and computed by every loader; heads for several tokens, which serving leaves out."""
KEYS_AND_VALUES = re.compile(r"self_attn\.[kv]_(proj|norm)\.")
"""What the last `num_kv_shared_layers` of Gemma 3n and 4 take from layers before them: stored by some versions, never read."""
RESIZED = re.compile(r"(embed_tokens|wte|word_embeddings|lm_head|embed_out)\.weight$")
"""A quantizer may pad the vocabulary; the vocabulary's check holds them against vocab_size."""
IN_ANY_LAYER = re.compile(r"(^|[._])\d+([._]|$)")
"""A number in a tensor's name, whatever the architecture calls its layers."""
EXPERTS = re.compile(r"^(.*\.experts\.)")
QUORUM = 0.9
"""Share of the baseline's tensors that must be found before the others count as missing, where there are other names."""
MAIN_STACK = 0.8
"""Share of all layered tensors that the language model's layers hold at least."""
GROUPS = (*FUSED, ("q_proj", "k_proj", "v_proj", "o_proj"), ("gate_proj", "up_proj", "down_proj"))


def check(facts: Facts, baseline: Facts | None) -> Iterator[Finding]:
    """Against the baseline where there is one, else against the layers' count and each other."""
    if baseline is not None and baseline.headers:
        yield from _against(facts, baseline)
    else:
        yield from _layer_count(facts)
        yield from _lone_gap(facts)


def _against(facts: Facts, baseline: Facts) -> Iterator[Finding]:
    kinds = {_kind(name) for name in facts.headers if ".experts." in name}
    wanted = [
        name
        for name, header in baseline.headers.items()
        if not BUFFERS.search(name) and not _is_elsewhere(name, header, facts, kinds)
    ]
    missing = [name for name in wanted if not _is_there(name, facts)]
    strange = _strange(facts, baseline)
    if strange and len(missing) > (1 - QUORUM) * len(wanted):
        yield TENSOR_NAMES_DIFFER.at(missing, f"{len(missing)} of the baseline's {len(wanted)} tensors are not here")
        return
    if missing:
        yield TENSOR_MISSING.at(missing, "the baseline has it")
    yield from _shapes(facts, baseline)
    if strange:
        yield TENSOR_UNEXPECTED.at(strange, "the baseline has nothing of that name")
    yield from _biases(facts, baseline)


def _strange(facts: Facts, baseline: Facts) -> list[str]:
    modules = {name.rpartition(".")[0] for name in baseline.headers}
    return [name for name in facts.headers if name.rpartition(".")[0] not in modules and not _is_known(name)]


def _is_there(name: str, facts: Facts) -> bool:
    module, _, tensor = name.rpartition(".")
    if tensor != "weight" or name in facts.headers:
        return name in facts.headers
    packed = (f"{module}.weight_packed", f"{module}.qweight")
    return any(each in facts.headers for each in packed) or _only_scales(module, facts)


def _only_scales(module: str, facts: Facts) -> bool:
    """A layer whose weights alone are gone is told with its scales."""
    return any(f"{module}.{name}" in facts.headers for name in COMPANIONS)


def _is_elsewhere(name: str, header: Header, facts: Facts, kinds: set[str]) -> bool:
    """A tied head that only one of both stores; experts that are stacked, or have other names, in one of both."""
    if name.endswith("lm_head.weight"):
        return True  # asked by the vocabulary's check, which knows whether it is tied
    place, layers = IN_LAYER.match(name), facts.text_config.get("num_hidden_layers")
    if place is not None and isinstance(layers, int) and int(place[2]) >= layers - _num_sharing(facts, place[3]):
        return True  # a layer that predicts further tokens, which serving leaves out, or has others' keys and values
    if (experts := EXPERTS.match(name)) is not None:
        return _kind(name) not in kinds and any(kind.startswith(experts[1]) for kind in kinds)
    mixture = name.rpartition(".")[0].rpartition(".")[0]  # Granite's stacks stand where the numbered ones would
    return len(header.shape) == 3 and any(kind.startswith(f"{mixture}.experts.") for kind in kinds)


def _num_sharing(facts: Facts, tensor: str) -> int:
    """The last layers that need no such tensor of their own."""
    said = facts.text_config.get("num_kv_shared_layers")
    return said if isinstance(said, int) and KEYS_AND_VALUES.match(tensor) else 0


def _kind(name: str) -> str:
    """An expert's module, whichever expert of its layer."""
    return EXPERT.sub(".experts.*.", name.rpartition(".")[0])


def _shapes(facts: Facts, baseline: Facts) -> Iterator[Finding]:
    bad = [
        name
        for name, header in baseline.headers.items()
        if (mine := facts.headers.get(name)) is not None
        and mine.shape != header.shape
        and len(header.shape) <= 2
        and not RESIZED.search(name)
    ]
    if bad:
        shape, wanted = facts.headers[bad[0]].shape, baseline.headers[bad[0]].shape
        yield TENSOR_SHAPE.at(bad, f"it is {list(shape)}, the baseline's is {list(wanted)}")


def _biases(facts: Facts, baseline: Facts) -> Iterator[Finding]:
    biases = [name for name in facts.headers if name.endswith(".bias") and name not in baseline.headers]
    biases = [
        name for name in biases if not BUFFERS.search(name) and f"{name.removesuffix('bias')}weight" in baseline.headers
    ]
    zero = {name for name in biases if (found := facts.values.get(name)) is not None and found.num_zero == found.num}
    for code, is_zero in ((BIAS_ZERO, True), (BIAS_UNEXPECTED, False)):
        if names := [name for name in biases if (name in zero) is is_zero]:
            yield code.at(names, "the baseline has no such bias")


def _is_known(name: str) -> bool:
    """Scales and packed weights, the output layer and experts are told elsewhere; buffers are no matter."""
    patterns = (BESIDE, BUFFERS, RESIZED, EXPERTS)
    return any(pattern.search(name) for pattern in patterns) or ".lm_head." in f".{name}"


def _layer_count(facts: Facts) -> Iterator[Finding]:
    """Layers 0 to num_hidden_layers - 1 in the stack that has nearly all tensors; encoders beside it say nothing."""
    said = None if facts.is_uneven else facts.text_config.get("num_hidden_layers")
    stacks: dict[str, set[int]] = defaultdict(set)
    sizes: Counter[str] = Counter()
    for name in facts.headers:
        if (found := IN_LAYER.match(name)) is not None:
            stacks[found[1]].add(int(found[2]))
            sizes[found[1]] += 1
    if not isinstance(said, int) or not facts.headers:
        return
    if said > 0 and not any(IN_ANY_LAYER.search(name) for name in facts.headers):
        yield TENSOR_MISSING.at(("layers",), f"num_hidden_layers is {said}, and no tensor belongs to a layer")
    if not sizes:
        return
    stack = sizes.most_common(1)[0][0]
    num_missing = said - sum(number < said for number in stacks[stack])
    if 0 < 2 * num_missing < said and sizes[stack] > MAIN_STACK * sizes.total():
        missing = [f"{stack}{number}" for number in range(said) if number not in stacks[stack]]
        yield TENSOR_MISSING.at(missing, f"num_hidden_layers is {said}, and {len(missing)} of them have no tensor")


def _lone_gap(facts: Facts) -> Iterator[Finding]:
    """A projection that one layer lacks, though it has its siblings and every other layer has it."""
    present: dict[str, set[int]] = defaultdict(set)
    for name in facts.headers:
        found = IN_LAYER.match(name)
        if found is not None and (BESIDE.search(name) or name.endswith(".weight")):
            present[f"{found[1]}*.{found[3].rpartition('.')[0]}"].add(int(found[2]))
    gaps = [
        module.replace("*", str(next(iter(lacking))), 1)
        for module, layers in present.items()
        if len(layers) > 1 and len(lacking := _siblings_layers(module, present) - layers) == 1
    ]
    if gaps:
        yield TENSOR_MISSING.at(gaps, "every other layer has it, and this one has its siblings")


def _siblings_layers(module: str, present: dict[str, set[int]]) -> set[int]:
    parent, _, name = module.rpartition(".")
    found: set[int] = set()
    for group in GROUPS:
        if name in group:
            found |= set().union(*(present.get(f"{parent}.{each}", set()) for each in group))
    return found
