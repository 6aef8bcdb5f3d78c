"""How many further items would settle what is INCONCLUSIVE: an estimate and its margin in, a number out. Touches nothing."""

from __future__ import annotations

from math import ceil, isfinite, log, sqrt

from scipy.special import ndtri

from qgate.schemas.verdict import Estimate

MOST_ITEMS = 1_000_000
"""More than this is as good as never: the harm sits on the margin."""


def further_items(found: Estimate, margin: float, alpha: float, power: float) -> int | None:
    """Items beyond those seen at which the verdict would fall with probability `power`, were the value the truth.

    At n items a bound lies about z_α·s/√n + c/n from the value: s is the spread of an item, c/n the unseen item's part,
    which falls as 1 − α^(1/n) and so as −ln α/n. Both are taken from the bound as it is. A truth at distance D from the
    margin is settled with probability `power` once D ≥ (z_α + z_β)·s/√n + c/n; for c = 0 that is the usual sample size
    (arXiv:2411.00640, section 5). None where nothing was measured, or the value sits on the margin.
    """
    if found.value is None or found.high is None or found.low is None or found.num_items == 0:
        return None
    distance = abs(margin - found.value)
    reach = found.high - found.value if margin > found.value else found.value - found.low
    if distance == 0 or not isfinite(reach):
        return None
    n, z_alpha, z_beta = found.num_items, float(-ndtri(alpha)), float(ndtri(power))
    spread = (found.standard_error or 0.0) * sqrt(n)
    unseen = max(0.0, reach - z_alpha * spread / sqrt(n)) / (1 - alpha ** (1 / n)) * -log(alpha)
    linear = (z_alpha + z_beta) * spread
    needed = ((linear + sqrt(linear**2 + 4 * unseen * distance)) / (2 * distance)) ** 2
    return max(1, ceil(needed) - n) if needed <= MOST_ITEMS else None
