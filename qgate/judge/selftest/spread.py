"""A token table in, how much of its KL's spread lies between items and not within them out. Touches nothing."""

from __future__ import annotations

import numpy as np

from qgate.judge.tokens import TokenTable

LEAST = 1e-6
"""Nats below which KL is rounding of the lists' float32."""


def between_items(table: TokenTable) -> float | None:
    """The share of the variance of ln KL that lies between items: the intraclass correlation of a one-way layout.

    By analysis of variance with unequal group sizes (Searle, Casella and McCulloch 1992, section 3.6); None where fewer
    than two items have two positions that differ.
    """
    use = table.kl > LEAST
    logs, cluster = np.log(table.kl[use]), table.cluster[use]
    _, cluster, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
    num_items, total = sizes.size, int(sizes.sum())
    if num_items < 2 or total <= num_items:
        return None
    means = np.bincount(cluster, weights=logs) / sizes
    within = float(((logs - means[cluster]) ** 2).sum()) / (total - num_items)
    spread = float((sizes * (means - logs.mean()) ** 2).sum()) / (num_items - 1)
    size = (total - float((sizes**2).sum()) / total) / (num_items - 1)
    between = max(0.0, (spread - within) / size)
    return between / (between + within) if between + within > 0 else None
