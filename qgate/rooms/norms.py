"""The weights of a norm as they multiply, of one checkpoint or of two. Reads the disk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qgate.inspection.norms import norms_before, offset
from qgate.io.survey import Survey

Floats = NDArray[np.float32]


def norm_weights(side: Survey, name: str) -> Floats:
    """As float32, [columns of the layers that it feeds]."""
    return side.data.floats(name) + np.float32(offset(side.facts.text_config))


def both_norms(module: str, mine: Survey, theirs: Survey) -> tuple[Floats, Floats] | None:
    """Those before a layer, in the checkpoint and in its baseline; None where both do not have one."""
    for name in norms_before(module):
        if name in mine.data.tensors and name in theirs.data.tensors:
            found = norm_weights(mine, name), norm_weights(theirs, name)
            return found if found[0].shape == found[1].shape else None
    return None
