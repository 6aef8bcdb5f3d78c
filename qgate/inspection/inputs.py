"""Scales of layers' inputs (`input_scale`, static activations): siblings' are one, and no norm gives more than its bound.

Layers that vLLM fuses have one input, and one calibration gives them one scale. A norm's output has the length
sqrt(columns) before it is multiplied by its weights (RMSNorm, arXiv 1910.07467), so none of its values is beyond
sqrt(columns) * max|w|. Calibrated scales come to 0.1 to 0.99 of that. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

from qgate.inspection.codes import WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.layers import Layer, fused_siblings
from qgate.inspection.misfits import HEAD_DIM
from qgate.inspection.norms import norms_before, offset
from qgate.schemas.inspection import Finding

INPUT_SCALE_FOREIGN = Code(
    "input-scale-foreign",
    WARNING,
    breaks="the scale was calibrated on other inputs, another layer's or those before SmoothQuant moved scales: this "
    "layer's are clipped, or rounded too coarsely",
    fix="take the input scales from the run that made the checkpoint, or calibrate anew",
)

CODES = (INPUT_SCALE_FOREIGN,)
FED_BY_RMS_NORM = HEAD_DIM.keys() - {"olmo2", "olmo3", "starcoder2"}
"""Model types whose `input_layernorm` and `post_attention_layernorm` (Gemma: `pre_feedforward_layernorm`) come before the
attention and the MLP, and add no bias."""
SAME, WITHIN = 1.1, 1.1
"""What siblings' scales may differ by, and a scale may be beyond its norm's bound: both are 1 but for rounding."""
LARGEST = {True: 448.0, False: 127.0}
"""What a scale of 1 stands for in FP8 (E4M3) and in INT8."""


def check(facts: Facts, layers: Sequence[Layer]) -> Iterator[Finding]:
    """One finding, of all layers with a scale that cannot be theirs."""
    scales = {layer.module: scale for layer in layers if (scale := _scale(facts, layer.module)) is not None}
    foreign: dict[str, str] = {}
    for layer in layers:
        if layer.module not in scales:
            continue
        scale, reach = scales[layer.module], _reach(facts, layer)
        siblings = [scales[module] for module in fused_siblings(layer.module, dict.fromkeys(scales, True))]
        if max(siblings) > SAME * min(siblings):
            foreign[layer.module] = (
                f"it is {scale:.3g}, of layers with the same input {min(siblings):.3g} to {max(siblings):.3g}"
            )
        elif reach is not None and scale > WITHIN * reach:
            foreign[layer.module] = (
                f"it is {scale:.3g}, and no output of the norm before it needs more than {reach:.3g}"
            )
    if foreign:
        yield INPUT_SCALE_FOREIGN.at([f"{module}.input_scale" for module in foreign], next(iter(foreign.values())))


def _scale(facts: Facts, module: str) -> float | None:
    """A scale per tensor that was set; others are told elsewhere."""
    values = facts.values.get(f"{module}.input_scale", facts.values.get(f"{module}.activation_scale"))
    return values.maximum if values is not None and values.num == 1 and values.maximum > 0 else None


def _reach(facts: Facts, layer: Layer) -> float | None:
    """The largest scale that the norm before the layer can ask for; None where it is not known."""
    if str(facts.text_config.get("model_type")) not in FED_BY_RMS_NORM:
        return None
    for name in norms_before(layer.module):
        if (values := facts.values.get(name)) is not None and values.num == layer.columns:
            largest = max(abs(values.minimum), abs(values.maximum)) + offset(facts.text_config)
            return sqrt(layer.columns) * largest / LARGEST[layer.scheme.is_float]
    return None
