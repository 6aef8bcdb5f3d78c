"""`g_idx`, the group of each column of a GPTQ layer: groups that there are, and heeded by the loader. Pure.

vLLM reads it only where desc_act is on, and else takes the columns as they come; transformers and GPTQModel always read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from qgate.inspection.codes import ERROR, WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.layers import Layer, fused_siblings
from qgate.inspection.packing import num_groups
from qgate.schemas.inspection import Finding

GROUP_INDEX_RANGE = Code(
    "group-index-range",
    ERROR,
    breaks="kernels read scales beyond the layer's own",
    fix="quantize the model anew, or take the tensors from the run that made it",
)
GROUP_INDEX_IGNORED = Code(
    "group-index-ignored",
    WARNING,
    breaks="vLLM gives these columns other groups' scales: it reads g_idx only where desc_act is on",
    fix="set desc_act to true, as the quantizer had it",
)
GROUP_INDEX_UNEVEN = Code(
    "group-index-uneven",
    WARNING,
    breaks="columns take the scale of another group than their own",
    fix="quantize the model anew, or take the tensors from the run that made it",
)
GROUP_INDEX_DIFFERS = Code(
    "group-index-differs",
    WARNING,
    breaks="act-order sorts columns by the input alone, and these layers have the same: some have another layer's g_idx",
    fix="take g_idx from the run that made the checkpoint, or quantize the model anew",
)

CODES = (GROUP_INDEX_RANGE, GROUP_INDEX_IGNORED, GROUP_INDEX_UNEVEN, GROUP_INDEX_DIFFERS)
ALIKE = 0.9
"""Share of columns that siblings have in the same groups at least: all but for ties."""


def check(facts: Facts, layers: Sequence[Layer]) -> Iterator[Finding]:
    """Findings on every `g_idx` that was read."""
    beyond: dict[str, str] = {}
    ignored: dict[str, str] = {}
    uneven: dict[str, str] = {}
    for layer in layers:
        name, scales = f"{layer.module}.g_idx", facts.headers.get(f"{layer.module}.scales")
        if layer.scheme.format != "gptq" or (found := facts.group_indices.get(name)) is None:
            continue
        last = num_groups(layer) - 1
        if scales is None or scales.shape[:1] != (last + 1,):
            continue  # the groups' size is what is wrong
        if found.lowest < 0 or found.highest > last:
            beyond[name] = f"it names groups {found.lowest} to {found.highest}, there are 0 to {last}"
        elif layer.scheme.group_size is not None and found.largest > layer.scheme.group_size:
            uneven[name] = f"{found.largest} columns are in one group of {layer.scheme.group_size}"
        elif layer.scheme.order is None and layer.scheme.group_size is not None and not found.is_in_order:
            ignored[name] = "its columns are out of order, and desc_act is off"
    for code, places in ((GROUP_INDEX_RANGE, beyond), (GROUP_INDEX_IGNORED, ignored), (GROUP_INDEX_UNEVEN, uneven)):
        if places:
            yield code.at(list(places), next(iter(places.values())))
    if not (beyond or uneven) and (apart := _apart(facts, layers)):
        yield GROUP_INDEX_DIFFERS.at(list(apart), next(iter(apart.values())))


def _apart(facts: Facts, layers: Sequence[Layer]) -> dict[str, str]:
    """Layers whose columns are in other groups than those of a sibling."""
    orders = {
        layer.module: np.frombuffer(found.columns, np.int32)
        for layer in layers
        if layer.scheme.order == "group" and (found := facts.group_indices.get(f"{layer.module}.g_idx")) is not None
    }
    apart: dict[str, str] = {}
    for module, order in orders.items():
        sibling = fused_siblings(module, dict.fromkeys(orders, True))[0]
        share = float(np.mean(order == orders[sibling])) if order.shape == orders[sibling].shape else 1.0
        if share < ALIKE:
            apart[f"{module}.g_idx"] = f"{1 - share:.0%} of the columns are in other groups than {sibling}'s"
    return apart
