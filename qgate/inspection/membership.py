"""Which layers are quantized against which the config promises: nothing left out, nothing let in. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qgate.inspection.codes import ERROR, WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.layers import HEAD, IN_LAYER, ROUTER, fused_siblings, stored_modules
from qgate.inspection.refused import refused
from qgate.inspection.scheme import Promise, promise, quantization_of
from qgate.inspection.vocabulary import generates, tied
from qgate.schemas.inspection import Finding

LAYER_NOT_QUANTIZED = Code(
    "layer-not-quantized",
    ERROR,
    breaks="engines look for its packed weights and scales, and find plain ones",
    fix="add the layer to the config's ignored ones, or quantize it",
)
LAYER_LEFT_PLAIN = Code(
    "layer-left-plain",
    WARNING,
    breaks="vLLM takes it as plain; transformers looks for packed weights there",
    fix="quantize it, or exclude it by name in the config",
)
LAYER_QUANTIZED_THOUGH_IGNORED = Code(
    "layer-quantized-though-ignored",
    ERROR,
    breaks="engines load its quantized values as if they were plain weights",
    fix="take it off the config's ignored ones",
)
KIND_NOT_IGNORED = Code(
    "kind-not-ignored",
    WARNING,
    breaks="engines that quantize layers of this kind look for packed weights there",
    fix="add it to the config's ignored layers",
)
FUSED_LAYERS_DIFFER = Code(
    "fused-layers-differ",
    WARNING,
    breaks="vLLM fuses these layers and refuses different schemes in one",
    fix="quantize or ignore all of them",
)
ROUTER_QUANTIZED = Code(
    "router-quantized",
    WARNING,
    breaks="a rounded router sends tokens to other experts; some engines refuse it",
    fix="add the router to the ignored layers",
)
HEAD_QUANTIZED = Code(
    "head-quantized",
    WARNING,
    breaks="vLLM loads a quantized lm_head only where the config names it",
    fix="add lm_head to the ignored layers, or name it as a target",
)
QUANTIZATION_CONFIG_MISSING = Code(
    "quantization-config-missing",
    ERROR,
    breaks="engines load quantized values as if they were plain weights",
    fix="add the quantization_config that the quantizer wrote",
)
QUANTIZATION_METHOD_UNKNOWN = Code(
    "quantization-method-unknown",
    WARNING,
    breaks="nothing of the quantized tensors could be checked",
    fix="convert the checkpoint to compressed-tensors, AWQ, GPTQ or FP8",
)
QUANTIZATION_CONFIG_WRONG = Code(
    "quantization-config-wrong",
    ERROR,
    breaks="loaders refuse the quantization_config",
    fix="take the quantization_config that the quantizer wrote",
)

CODES = (
    LAYER_NOT_QUANTIZED,
    LAYER_LEFT_PLAIN,
    LAYER_QUANTIZED_THOUGH_IGNORED,
    KIND_NOT_IGNORED,
    FUSED_LAYERS_DIFFER,
    ROUTER_QUANTIZED,
    HEAD_QUANTIZED,
    QUANTIZATION_CONFIG_MISSING,
    QUANTIZATION_METHOD_UNKNOWN,
    QUANTIZATION_CONFIG_WRONG,
)
BESIDE = frozenset({"quantize_config.json", "quant_config.json"})
BITS = range(2, 9)


def check(facts: Facts) -> Iterator[Finding]:
    """Findings on the config as a whole, and on every linear layer."""
    stored = stored_modules(facts.headers)
    said, promised = quantization_of(facts.config), promise(facts.config)
    quantized = [module for module, is_quantized in stored.items() if is_quantized]
    if said is None and facts.config.get("quantization_config"):
        yield QUANTIZATION_CONFIG_WRONG.at("config.json: quantization_config", "it is no object")
    elif said is None and quantized and (beside := sorted(facts.files & BESIDE)):
        detail = "the quantization is described here, where engines look only if they are told to"
        yield QUANTIZATION_METHOD_UNKNOWN.at(beside, detail)
    elif said is None and quantized:
        yield QUANTIZATION_CONFIG_MISSING.at(quantized, "they are stored quantized, and config.json does not say how")
    elif said is not None and promised is None:
        version = f", version {said['version']}" if said.get("quant_method") == "awq" else ""
        detail = f"quant_method is {said.get('quant_method')!r}{version}"
        yield QUANTIZATION_METHOD_UNKNOWN.at("config.json: quantization_config", detail)
    elif said is not None and promised is not None and (wrong := _wrong(promised) or refused(said)) is not None:
        if quantized or promised.rules:  # sparse weights have a config without a rule
            yield QUANTIZATION_CONFIG_WRONG.at("config.json: quantization_config", wrong)
    elif promised is not None:
        yield from _left_out(stored, promised)
        yield from _plain_head(facts, stored, promised)
        yield from _let_in(stored, promised, is_tied=tied(facts) is True)
        yield from _fused(stored, promised)


def is_usable(promised: Promise | None) -> bool:
    """Whether layers can be held against the promise at all."""
    return promised is not None and _wrong(promised) is None


def _wrong(promised: Promise) -> str | None:
    schemes = [scheme for _, scheme in promised.rules if scheme is not None]
    if not schemes:
        return "it names no weights that are quantized (config_groups)"
    for scheme in schemes:
        if scheme.bits not in BITS:
            return f"it says {scheme.bits} bits"
        if scheme.group_size is not None and scheme.group_size <= 0:
            return f"it says groups of {scheme.group_size} columns"
    return None


def _left_out(stored: Mapping[str, bool], promised: Promise) -> Iterator[Finding]:
    plain = [module for module, is_quantized in stored.items() if not is_quantized and promised.scheme_of(module)]
    plain = [module for module in plain if not HEAD.search(module) and not ROUTER.search(module)]
    kinds = {_kind(module) for module, is_quantized in stored.items() if is_quantized}
    stray = [module for module in plain if _kind(module) in kinds]
    if not promised.names_exclusions:  # loaders take what is plain from the tensors: only a stray layer is odd
        stray = [module for module in stray if not _is_fused_apart(module, stored, promised)]
        if stray:
            yield LAYER_LEFT_PLAIN.at(stray, "it is plain, and its like in other layers is quantized")
        return
    if stray:
        yield LAYER_NOT_QUANTIZED.at(stray, f"{promised.method} promises it, and it is stored plain, unlike its like")
    if other := [module for module in plain if _kind(module) not in kinds]:
        yield KIND_NOT_IGNORED.at(other, f"{promised.method} promises it, and all of its kind are stored plain")


def _plain_head(facts: Facts, stored: Mapping[str, bool], promised: Promise) -> Iterator[Finding]:
    """transformers counts the output layer among compressed-tensors' `Linear`, tied or not; vLLM does not."""
    heads = [module for module in stored if HEAD.search(module) and not IN_LAYER.match(module)]
    if not heads and not any(HEAD.search(target) for target in promised.ignored):  # one that is tied has any path
        heads = ["lm_head"]
    if promised.method == "compressed-tensors" and generates(facts):
        plain = [module for module in heads if not stored.get(module) and promised.scheme_of(module)]
        if plain:
            why = "transformers does not load it where it is tied, else answers NaN; vLLM takes it as plain"
            yield KIND_NOT_IGNORED.at(plain, f"it is stored plain and not ignored: {why}")


def _kind(module: str) -> str:
    """The module's name without the number of its layer."""
    found = IN_LAYER.match(module)
    return f"{found[1]}*.{found[3]}" if found else module


def _let_in(stored: Mapping[str, bool], promised: Promise, *, is_tied: bool) -> Iterator[Finding]:
    quantized = [module for module, is_quantized in stored.items() if is_quantized]
    heads = [module for module in quantized if HEAD.search(module) and not _names_head(module, promised)]
    heads = [module for module in heads if is_tied or not promised.is_ignored(module)]  # else it is loaded as plain
    if heads:
        yield HEAD_QUANTIZED.at(heads, "it is stored quantized, and the config does not name it")
    routers = [module for module in quantized if ROUTER.search(module)]
    if routers:
        yield ROUTER_QUANTIZED.at(routers, "it is stored quantized")
    apart = {*heads, *routers}
    uninvited = [module for module in quantized if promised.scheme_of(module) is None and module not in apart]
    if uninvited:
        why = "the config ignores it" if promised.is_ignored(uninvited[0]) else "no target of the config is it"
        yield LAYER_QUANTIZED_THOUGH_IGNORED.at(uninvited, f"it is stored quantized, and {why}")


def _names_head(module: str, promised: Promise) -> bool:
    """vLLM's output layer is no class `Linear`: it must be a target by name, or have GPTQ's and AWQ's flag."""
    if promised.method == "compressed-tensors":
        return any(scheme is not None and promised.scheme_of(module) is scheme for _, scheme in _by_name(promised))
    return promised.has_quantized_head


def _by_name(promised: Promise) -> tuple[tuple[str, object], ...]:
    return tuple((target, scheme) for target, scheme in promised.rules if target != "Linear")


def _fused(stored: Mapping[str, bool], promised: Promise) -> Iterator[Finding]:
    groups = {siblings: None for module in stored if len(siblings := fused_siblings(module, stored)) > 1}
    bad = [group for group in groups if _differ(group, stored, promised)]
    if bad:
        first = ", ".join(
            f"{module.rpartition('.')[2]} {'quantized' if stored[module] else 'plain'}" for module in bad[0]
        )
        yield FUSED_LAYERS_DIFFER.at([group[0].rpartition(".")[0] for group in bad], first)


def _differ(group: tuple[str, ...], stored: Mapping[str, bool], promised: Promise) -> bool:
    """Whether siblings are promised, or, where the config lists no exclusions, stored, in different ways."""
    schemes = {promised.scheme_of(module) if stored[module] or promised.names_exclusions else None for module in group}
    return len(schemes) > 1


def _is_fused_apart(module: str, stored: Mapping[str, bool], promised: Promise) -> bool:
    siblings = fused_siblings(module, stored)
    return len(siblings) > 1 and _differ(siblings, stored, promised)
