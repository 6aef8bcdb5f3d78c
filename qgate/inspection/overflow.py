"""Whether a model trained in bfloat16 may pass float16's largest number when it is served in float16. Pure.

The largest activations arise where an MLP multiplies its gate by its input ("massive activations", arXiv 2402.17762).
For an input of unit variance after the norm, row i of the gate and of the up projection give values of the size of
their rows' norms, the norm's weights multiplied in; outliers reach SIGMAS of that, and their product must stay below
65504.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from qgate.inspection.config import FLOAT16_OVERFLOW
from qgate.inspection.facts import Facts
from qgate.schemas.inspection import Finding

FLOAT16_MAX = 65504.0
SIGMAS = 12.0
"""Beyond what Gaussian inputs reach; the inputs of trained models are heavy-tailed."""


def is_cast(facts: Facts, baseline: Facts) -> bool:
    """Whether the checkpoint says float16 where its baseline says bfloat16."""
    mine, theirs = (each.text_config.get("dtype", each.text_config.get("torch_dtype")) for each in (facts, baseline))
    return (mine, theirs) == ("float16", "bfloat16")


def peak(gate: NDArray[np.float32], up: NDArray[np.float32]) -> float:
    """From the row norms of both projections: the largest product that an outlier makes."""
    return float(SIGMAS**2 * np.max(gate.astype(np.float64) * up.astype(np.float64), initial=0.0))


def check(peaks: Mapping[str, float]) -> tuple[Finding, ...]:
    """A finding for the MLPs whose peaks float16 does not hold."""
    over = {module: value for module, value in peaks.items() if value > FLOAT16_MAX}
    if not over:
        return ()
    worst = max(over.values())
    detail = f"outliers reach about {worst:.3g} by the baseline's weights, and the baseline is in bfloat16"
    return (FLOAT16_OVERFLOW.at(sorted(over, key=lambda module: -over[module]), detail),)
