"""What an experiment may change, by name, and which experiments clear a cause. Data only, touches nothing."""

from __future__ import annotations

from qgate.schemas.repro import Arm

AS_FILED, GREEDY, ONE_AT_A_TIME, NAN = "as_filed", "greedy", "one_at_a_time", "look_for_nan"
TEMPLATE, CONFIGURATION, NEUTRAL = "template", "configuration", "neutral_defaults"
REFERENCE, DEQUANTIZED, LEVER = "reference_engine", "dequantized", "engine:"
ALL_LEVERS = f"{LEVER}all"
WIDE = frozenset({"bfloat16", "float32"})
"""Arithmetics in which what overflows in float16 does not."""
WIDENING = frozenset({f"{LEVER}bfloat16", f"{LEVER}float32"})
"""What of an engine's settings has a wider range than float16."""
OWN_DTYPE, AGAIN, FAILED_AGAIN = "own_dtype", "as_filed_again", "failed_again"


def excludes(factor: str, arm: Arm) -> bool:
    """Whether an experiment that keeps the failure clears a cause, so that it must keep the larger part."""
    if arm == "baseline":
        return factor == AS_FILED
    return factor in {ONE_AT_A_TIME, TEMPLATE, CONFIGURATION, REFERENCE, DEQUANTIZED} | WIDENING
