"""nonfinite_logprob: a sampled token has no finite log-probability. A view in, a hit or None out. Pure."""

from __future__ import annotations

import math

from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "nonfinite_logprob"
SUMMARY = "a sampled token has no finite log-probability: NaN or infinity in the logits"
SENTINEL = -9999.0
"""What OpenAI-compatible servers write for minus infinity."""


def detect(view: View) -> DefectHit | None:
    """The first such token; the offset is the text's start, since tokens have no offsets here."""
    values = view.seen.logprobs
    if not values:
        return None
    bad = [index for index, value in enumerate(values) if value is None or not SENTINEL < value < math.inf]
    if not bad:
        return None
    return DefectHit(NAME, 0, f"{len(bad)} of {len(values)} tokens, first token {bad[0]}")
