"""Zero points: within the weights' range, and in the middle where the config says symmetric. Pure.

GPTQ stores them packed: `gptq` (v1) less one, `gptq_v2` as they are. vLLM does not read those of symmetric checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from qgate.inspection.codes import WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.layers import Layer
from qgate.inspection.scheme import quantization_of
from qgate.schemas.inspection import Finding

ZERO_POINT_RANGE = Code(
    "zero-point-range",
    WARNING,
    breaks="weights are shifted by more than their width",
    fix="quantize the model anew, or take the tensors from the run that made it",
)
ZERO_POINT_NOT_SYMMETRIC = Code(
    "zero-point-not-symmetric",
    WARNING,
    breaks="vLLM ignores the zero points of a symmetric checkpoint: all weights are shifted",
    fix="set sym (or symmetric) to false, or quantize symmetrically",
)
ZERO_POINT_OFFSET = Code(
    "zero-point-offset",
    WARNING,
    breaks="transformers and GPTQModel read these zero points one off; vLLM does not use them",
    fix="set checkpoint_format to gptq_v2 (stored as they are) or gptq (stored less one)",
)

CODES = (ZERO_POINT_RANGE, ZERO_POINT_NOT_SYMMETRIC, ZERO_POINT_OFFSET)


def check(facts: Facts, layers: Iterable[Layer]) -> Iterator[Finding]:
    """Findings on the zero points that were read."""
    said = quantization_of(facts.config) or {}
    step = 0 if said.get("checkpoint_format") == "gptq_v2" else 1
    beyond: dict[str, str] = {}
    uneven: dict[str, str] = {}
    offset: dict[str, str] = {}
    for layer in layers:
        if layer.scheme.format == "gptq":
            if layer.scheme.is_symmetric:
                _sort(layer, facts, step, uneven, offset)
        else:
            name = f"{layer.module}.weight_zero_point"
            half = 2 ** (layer.scheme.bits - 1)
            known = facts.zero_points.get(name, {})
            outside = [value for value in known if not -half <= value < half]
            if outside:
                beyond[name] = f"it has {outside[0]}, the range is {-half} to {half - 1}"
            elif layer.scheme.is_symmetric and any(known) and layer.rows % layer.scheme.pack_factor == 0:
                uneven[name] = f"it has {next(value for value in known if value)}, and symmetric means 0 everywhere"
    for code, places in ((ZERO_POINT_RANGE, beyond), (ZERO_POINT_NOT_SYMMETRIC, uneven), (ZERO_POINT_OFFSET, offset)):
        if places:
            yield code.at(list(places), next(iter(places.values())))


def _sort(layer: Layer, facts: Facts, step: int, uneven: dict[str, str], offset: dict[str, str]) -> None:
    """A symmetric GPTQ layer's zero points are all the middle, less `step`."""
    name, middle = f"{layer.module}.qzeros", 2 ** (layer.scheme.bits - 1)
    counts: Mapping[int, int] = facts.zero_points.get(name, {})
    if not counts or set(counts) == {middle - step}:
        return
    if set(counts) == {middle - (1 - step)}:
        offset[name] = f"all are {middle - (1 - step)}, not {middle - step}"
        return
    stray = next(value for value in counts if value != middle - step)
    uneven[name] = f"it has {stray}, and sym means {middle - step} everywhere"
