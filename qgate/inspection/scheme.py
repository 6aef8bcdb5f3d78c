"""The `quantization_config` in, what it promises for each layer out. Pure.

The rules are the loaders': compressed-tensors matches targets by name, `re:` pattern or class, `ignore` wins
(compressed_tensors.utils.match, vLLM's CompressedTensorsConfig); AWQ leaves out what `modules_to_not_convert` is a part
of; GPTQ leaves out what a `-:` rule of `dynamic` matches and overrides bits and group size by the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

LINEAR = "Linear"
EMBEDDING = re.compile(r"(^|\.)(embed\w*|wte|wpe|\w*_embed(dings?)?|emb)$")
"""Names of modules that the target `Embedding` means."""
NO_PATTERN = (re.error, OverflowError, RecursionError)
"""What Python says of a text that is no regular expression."""
ORDERS = {"group": "group", "dynamic": "group", "True": "group", "static": "static", "weight": "static"}
"""compressed-tensors' `actorder` to `Scheme.order`."""


@dataclass(frozen=True)
class Scheme:
    """How one layer's weights are quantized."""

    method: str
    format: str
    """pack-quantized, int-quantized, float-quantized, awq, gptq, fp8."""
    bits: int
    is_float: bool = False
    group_size: int | None = None
    """Columns that share a scale; None where all of a row, or of the tensor, does."""
    block: tuple[int, int] | None = None
    is_per_tensor: bool = False
    is_symmetric: bool = True
    order: str | None = None
    """`group` where columns of one group lie apart (act-order with g_idx), `static` where their order was undone."""
    input_bits: int | None = None
    has_static_input: bool = False
    has_input_zero_point: bool = False

    @property
    def pack_factor(self) -> int:
        """Weights in a 32-bit integer."""
        return 32 // self.bits

    @property
    def is_packed(self) -> bool:
        """Whether weights are packed into 32-bit integers."""
        return self.format in {"pack-quantized", "awq", "gptq"}


@dataclass(frozen=True)
class Promise:
    """A whole checkpoint's quantization."""

    method: str
    rules: tuple[tuple[str, Scheme | None], ...]
    """Target (module name, `re:` pattern, `~part` of a name, or class `Linear`) to scheme, the first match counts."""
    ignored: tuple[str, ...] = ()
    has_quantized_head: bool = False
    kv_cache: Mapping[str, Any] | None = None
    names_exclusions: bool = True
    """Whether the config lists what is left out; if not, loaders take it from the tensors."""

    def scheme_of(self, module: str) -> Scheme | None:
        """The scheme that `module` must have; None where it stays as it was."""
        if self.is_ignored(module):
            return None
        by_name = (scheme for target, scheme in self.rules if target != LINEAR and matches(module, target))
        by_class = (scheme for target, scheme in self.rules if target == LINEAR)
        return next(by_name, None) or next(by_class, None)

    def is_ignored(self, module: str) -> bool:
        """Whether the config leaves `module` out by name."""
        return any(matches(module, target) for target in self.ignored)


def matches(module: str, target: str) -> bool:
    """Whether `target` is `module`'s name, a `re:` pattern of its start, (`~part`) one or more whole parts of it, or the class
    `Embedding`."""
    if target == "Embedding":
        return EMBEDDING.search(module) is not None
    if target.startswith("re:"):
        try:
            return re.match(target[3:], module) is not None
        except NO_PATTERN:
            return False
    if target.startswith("~"):
        return f".{target[1:]}." in f".{module}."
    return target == module


def quantization_of(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The `quantization_config`, where vLLM looks for it: at the top, as `compression_config`, in `text_config`."""
    inner = config.get("text_config")
    for place in (config, inner if isinstance(inner, Mapping) else {}):
        for key in ("quantization_config", "compression_config"):
            if isinstance(said := place.get(key), Mapping) and said:
                return said
    return None


def promise(config: Mapping[str, Any]) -> Promise | None:
    """What the config promises; None for plain weights and for methods that are not known here."""
    said = quantization_of(config)
    if said is None:
        return None
    match said.get("quant_method"):
        case "compressed-tensors":
            return _compressed_tensors(said)
        case "awq" if str(said.get("version", "gemm")).lower() == "gemm":
            return _awq(said)
        case "gptq":
            return _gptq(said)
        case "fp8":
            return _fp8(said)
    return None


def _compressed_tensors(said: Mapping[str, Any]) -> Promise:
    groups = said.get("config_groups")
    rules: list[tuple[str, Scheme | None]] = []
    for group in groups.values() if isinstance(groups, Mapping) else ():
        if isinstance(group, Mapping):
            scheme = _of_group(group, str(said.get("format", "")))
            rules += [(target, scheme) for target in _texts(group.get("targets"))]
    kv_cache = said.get("kv_cache_scheme")
    return Promise(
        method="compressed-tensors",
        rules=tuple(rules),
        ignored=_texts(said.get("ignore")),
        kv_cache=kv_cache if isinstance(kv_cache, Mapping) else None,
    )


def _of_group(group: Mapping[str, Any], whole_format: str) -> Scheme | None:
    weights, inputs = group.get("weights"), group.get("input_activations")
    if not isinstance(weights, Mapping):
        return None
    inputs = inputs if isinstance(inputs, Mapping) else {}
    strategy = str(weights.get("strategy") or _strategy(weights.get("group_size")))
    return Scheme(
        method="compressed-tensors",
        format=str(group.get("format") or whole_format),
        bits=_integer(weights.get("num_bits"), 8),
        is_float=weights.get("type", "int") == "float",
        group_size=_integer(weights.get("group_size"), 0) if strategy in {"group", "tensor_group"} else None,
        block=_block(weights.get("block_structure")),
        is_per_tensor=strategy == "tensor",
        is_symmetric=weights.get("symmetric") is not False,
        order=ORDERS.get(str(weights.get("actorder"))),
        input_bits=_integer(inputs.get("num_bits"), 8) if inputs else None,
        has_static_input=bool(inputs) and not inputs.get("dynamic"),
        has_input_zero_point=inputs.get("symmetric") is False and not inputs.get("dynamic"),
    )


def _strategy(group_size: Any) -> str:
    """compressed-tensors' default where none is written."""
    if group_size is None:
        return "tensor"
    return "channel" if group_size == -1 else "group"


def _awq(said: Mapping[str, Any]) -> Promise:
    group = _integer(said.get("q_group_size", said.get("group_size")), -1)
    scheme = Scheme(
        method="awq",
        format="awq",
        bits=_integer(said.get("w_bit", said.get("bits")), 4),
        group_size=None if group <= 0 else group,
        is_symmetric=said.get("zero_point") is False,
    )
    left_out = _texts(said.get("modules_to_not_convert"))
    return Promise(
        method="awq",
        rules=((LINEAR, scheme),),
        ignored=tuple(f"~{part}" for part in left_out),
        has_quantized_head=said.get("lm_head") is True,
        names_exclusions=bool(left_out),
    )


def _gptq(said: Mapping[str, Any]) -> Promise:
    group = _integer(said.get("group_size"), -1)
    scheme = Scheme(
        method="gptq",
        format="gptq",
        bits=_integer(said.get("bits"), 4),
        group_size=None if group <= 0 else group,
        is_symmetric=said.get("sym") is not False,
        order="group" if said.get("desc_act") is True and group > 0 else None,
    )
    rules: list[tuple[str, Scheme | None]] = []
    ignored: list[str] = []
    dynamic = said.get("dynamic")
    for pattern, changes in dynamic.items() if isinstance(dynamic, Mapping) else ():
        if pattern.startswith("-:"):
            ignored.append(f"re:{pattern[2:]}")
        elif isinstance(changes, Mapping):
            rules.append((f"re:{pattern.removeprefix('+:')}", _overridden(scheme, changes)))
    return Promise(
        method="gptq",
        rules=(*rules, (LINEAR, scheme)),
        ignored=tuple(ignored),
        has_quantized_head=said.get("lm_head") is True,
        names_exclusions=False,
    )


def _overridden(scheme: Scheme, changes: Mapping[str, Any]) -> Scheme:
    group = _integer(changes.get("group_size"), scheme.group_size or -1)
    is_ordered = changes.get("desc_act", scheme.order == "group") and group > 0
    return replace(
        scheme,
        bits=_integer(changes.get("bits"), scheme.bits),
        group_size=None if group <= 0 else group,
        is_symmetric=changes.get("sym", scheme.is_symmetric) is not False,
        order="group" if is_ordered else None,
    )


def _fp8(said: Mapping[str, Any]) -> Promise:
    block = _block(said.get("weight_block_size"))
    scheme = Scheme(
        method="fp8",
        format="fp8",
        bits=8,
        is_float=True,
        block=block,
        is_per_tensor=block is None,
        input_bits=8,
        has_static_input=said.get("activation_scheme") == "static",
    )
    left_out = _texts(said.get("ignored_layers")) or _texts(said.get("modules_to_not_convert"))
    return Promise(method="fp8", rules=((LINEAR, scheme),), ignored=left_out, names_exclusions=bool(left_out))


def _block(value: Any) -> tuple[int, int] | None:
    """Rows and columns of a block of FP8 weights."""
    if isinstance(value, list) and len(value) == 2 and all(_integer(size, 0) > 0 for size in value):
        return value[0], value[1]
    return None


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, Iterable) and not isinstance(value, str) else ()


def _integer(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
