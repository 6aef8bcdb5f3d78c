"""The weights of a norm as they multiply. Reads the disk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qgate.inspection.norms import offset
from qgate.io.survey import Survey


def norm_weights(side: Survey, name: str) -> NDArray[np.float32]:
    """As float32, [columns of the layers that it feeds]."""
    return side.data.floats(name) + np.float32(offset(side.facts.config))
