"""Scales and other values: finite, positive, not denormal; fused layers that agree; experts that were reached. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from qgate.inspection.codes import ERROR, WARNING, Code
from qgate.inspection.facts import Facts, Values
from qgate.inspection.layers import EXPERT, Layer, fused_siblings
from qgate.schemas.inspection import Finding

SCALE_NOT_FINITE = Code(
    "scale-not-finite",
    ERROR,
    breaks="every output of these channels is NaN or infinite",
    fix="quantize the model anew, or take the tensors from the run that made it",
)
SCALE_NOT_POSITIVE = Code(
    "scale-not-positive",
    WARNING,
    breaks="a scale of zero erases its weights, a negative one flips what its kernel expects",
    fix="quantize the model anew, or take the tensors from the run that made it",
)
SCALE_DENORMAL = Code(
    "scale-denormal",
    WARNING,
    breaks="kernels that flush denormal numbers to zero erase these weights",
    fix="quantize with scales in bfloat16 or float32, or clip them from below",
)
WEIGHTS_NOT_FINITE = Code(
    "weights-not-finite",
    ERROR,
    breaks="one infinite weight makes every answer NaN",
    fix="convert from the original in bfloat16; float16 ends at 65504",
)
FUSED_SCALES_DIFFER = Code(
    "fused-scales-differ",
    WARNING,
    breaks="vLLM takes the largest scale for fused layers: those with small ones lose bits, and with NVFP4 their size",
    fix="quantize with a scale per channel, or with one shared by the fused layers",
)
EXPERT_UNREACHED = Code(
    "expert-unreached",
    WARNING,
    breaks="calibration never sent a token there: its activations are cut off or rounded away when one comes",
    fix="calibrate on more or other texts, or send every token through every expert",
)

CODES = (
    SCALE_NOT_FINITE,
    SCALE_NOT_POSITIVE,
    SCALE_DENORMAL,
    WEIGHTS_NOT_FINITE,
    FUSED_SCALES_DIFFER,
    EXPERT_UNREACHED,
)
SCALE = re.compile(
    r"\.(weight_scale|weight_scale_inv|scales|input_scale|activation_scale|[kvq]_scale|weight_global_scale|input_global_scale)$"
)
INPUT_SCALE = ".input_scale"
FUSED_RATIO = 16.0
"""Scales of fused FP8 layers this far apart cost the smaller one four of its binary places below the largest value."""
GLOBAL_RATIO = 1.01
"""NVFP4's global scales are one for fused layers: vLLM decodes all of them with the largest."""
UNREACHED_RATIO = 1000.0
"""An expert's input scale so far below its siblings' median was set by no token."""


def check(facts: Facts, layers: Sequence[Layer]) -> Iterator[Finding]:
    """Findings on every value that was read."""
    unreached = _unreached(facts)
    scales = {name: values for name, values in facts.values.items() if SCALE.search(name) and name not in unreached}
    plain = {name: values for name, values in facts.values.items() if not SCALE.search(name)}
    yield from _where(SCALE_NOT_FINITE, scales, lambda values: values.num_nonfinite, "NaN or infinite")
    yield from _where(
        SCALE_NOT_POSITIVE, scales, lambda values: values.num_zero + values.num_negative, "zero or negative"
    )
    yield from _where(SCALE_DENORMAL, scales, lambda values: values.num_denormal, "below the type's normal numbers")
    yield from _where(WEIGHTS_NOT_FINITE, plain, lambda values: values.num_nonfinite, "NaN or infinite")
    yield from _fused(facts, layers)
    if unreached:
        yield EXPERT_UNREACHED.at(sorted(unreached), f"{next(iter(unreached.values()))}")


def _where(code: Code, values: dict[str, Values], count: Callable[[Values], int], what: str) -> Iterator[Finding]:
    bad = [name for name, each in values.items() if count(each)]
    if bad:
        yield code.at(bad, f"{count(values[bad[0]])} of {values[bad[0]].num} are {what}")


def _fused(facts: Facts, layers: Sequence[Layer]) -> Iterator[Finding]:
    """Siblings' FP8 scales per tensor, and NVFP4's global ones; INT8 weights keep their own in vLLM."""
    per_tensor = {layer.module: True for layer in layers if layer.scheme.is_float and layer.scheme.is_per_tensor}
    every = {layer.module: True for layer in layers}
    apart: dict[str, tuple[float, float]] = {}
    for tensor, modules, ratio in (
        ("weight_scale", per_tensor, FUSED_RATIO),
        ("weight_global_scale", every, GLOBAL_RATIO),
        ("input_global_scale", every, GLOBAL_RATIO),
    ):
        for group in dict.fromkeys(fused_siblings(module, modules) for module in modules):
            known = [facts.values[name].maximum for module in group if (name := f"{module}.{tensor}") in facts.values]
            if len(known) > 1 and min(known) > 0 and max(known) > ratio * min(known):
                apart[f"{group[0].rpartition('.')[0]}.*.{tensor}"] = (min(known), max(known))
    if apart:
        low, high = next(iter(apart.values()))
        yield FUSED_SCALES_DIFFER.at(sorted(apart), f"from {low:.3g} to {high:.3g}")


def _unreached(facts: Facts) -> dict[str, str]:
    """Input scales of experts that no token set, and why."""
    groups: dict[str, dict[str, float]] = defaultdict(dict)
    for name, values in facts.values.items():
        if name.endswith(INPUT_SCALE) and EXPERT.search(name):
            is_set = values.num_nonfinite == 0 and values.maximum > 0
            groups[EXPERT.sub(".experts.*.", name)][name] = values.maximum if is_set else 0.0
    found = {}
    for scales in groups.values():
        usual = median(scales.values())
        for name, scale in scales.items():
            if usual > 0 and scale * UNREACHED_RATIO < usual:
                found[name] = f"it is {scale:.3g}, the median of its siblings {usual:.3g}"
    return found
