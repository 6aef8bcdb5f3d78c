"""Values of a quantization_config that loaders refuse, or read otherwise than they are meant. Pure.

The words are those of compressed_tensors' QuantizationArgs, which transformers and vLLM both build from the config, and
of their matching of names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from qgate.inspection.scheme import NO_PATTERN

STRATEGIES = frozenset({"tensor", "channel", "group", "block", "token", "tensor_group", "attn_head"})
ORDERS = frozenset({"group", "weight", "static", "dynamic"})
TYPES = frozenset({"int", "float"})


def refused(said: Mapping[str, Any]) -> str | None:
    """The first value that no loader takes, with why."""
    match said.get("quant_method"):
        case "compressed-tensors":
            return next(_of_groups(said), None)
        case "awq" if isinstance(left_out := said.get("modules_to_not_convert"), str):
            return f"modules_to_not_convert is {left_out!r}, not a list: loaders take each of its letters for a name"
    return None


def _of_groups(said: Mapping[str, Any]) -> Iterator[str]:
    groups = said.get("config_groups")
    patterns = list(_texts(said.get("ignore")))
    for group in groups.values() if isinstance(groups, Mapping) else ():
        if not isinstance(group, Mapping):
            continue
        patterns += _texts(group.get("targets"))
        for part in ("weights", "input_activations", "output_activations"):
            args = group.get(part)
            if isinstance(args, Mapping):
                yield from (f"{part}: {odd}" for odd in _arguments(args))
    for pattern in patterns:
        try:
            re.compile(pattern.removeprefix("re:") if pattern.startswith("re:") else "")
        except NO_PATTERN as error:
            yield f"{pattern!r} is no regular expression ({error})"


def _arguments(args: Mapping[str, Any]) -> Iterator[str]:
    for name, known in (("type", TYPES), ("strategy", STRATEGIES), ("actorder", ORDERS)):
        value = args.get(name)
        if isinstance(value, str) and value.lower() not in known:
            yield f"{name} is {value!r}, which is none of {', '.join(sorted(known))}"
    size = args.get("group_size")
    if isinstance(size, int) and not isinstance(size, bool) and (size == 0 or size < -1):
        yield f"group_size is {size}"


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
