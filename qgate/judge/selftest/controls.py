"""What checkpoints that were damaged on purpose are asked: criteria, sizes, repetitions. Data only."""

from __future__ import annotations

from itertools import product

from qgate.schemas.recipe import Criterion

MARGINS = (
    ("score_loss", 0.05),
    ("defect_increase", 0.05),
    ("truncation_increase", 0.05),
    ("flip_rate", 0.10),
    ("kl_mean", 0.03),
    ("top1_disagreement", 0.10),
)
"""Metrics that are means over items, so that any part of a set has them, and margins that lie among the five damages."""

MOST_ITEMS = 5_000
"""More than this is told as "more"."""
FEWEST_ITEMS = 5
STEPS_PER_DOUBLING = 8
"""Sizes that are tried lie a tenth apart."""
NUM_SETS = 300
"""Sets drawn of each size when items are counted that a set needs."""
NUM_PARTS = 2_000
"""Parts drawn of a set when the gate is run on them."""
RESAMPLES = 4_000
"""Reweightings per bound here: fewer than in a verdict, which makes a bound wider, not tighter."""
PERMUTATIONS = 20_000
PART_SIZES = (20, 50, 100, 200)
"""Items of the parts of a set; the whole set comes too."""


def criteria(sets: tuple[str, ...]) -> tuple[Criterion, ...]:
    """Every metric on each set and on all of them together."""
    scopes = (*sets, None) if len(sets) > 1 else sets
    return tuple(
        Criterion(metric=metric, margin=margin, evalset=scope) for scope, (metric, margin) in product(scopes, MARGINS)
    )
