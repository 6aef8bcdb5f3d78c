"""Right and wrong, counted pair by pair: exact McNemar and Newcombe's interval, for the reader. Touches nothing.

The verdict does not rest on these: they hold for one pair per item only, and Newcombe's interval covers less than it
says at some counts (measured by `qgate selftest`). They are what other tools report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan, sqrt
from typing import Any

import numpy as np
from scipy.special import betainc, ndtri

from qgate.judge.arms import Pair
from qgate.judge.criteria import right


@dataclass(frozen=True)
class Table:
    """Pairs by whether the baseline and the other arm were right."""

    both: int
    lost: int
    """Right before, wrong now."""
    won: int
    neither: int

    @property
    def num_pairs(self) -> int:
        """All pairs."""
        return self.both + self.lost + self.won + self.neither


def counts(pairs: Iterable[Pair], alpha: float) -> dict[str, Any]:
    """What a reader may want to know beside the estimate: flips both ways, exact McNemar, Newcombe's interval."""
    table, items = _tabulate(pairs)
    if table.num_pairs == 0:
        return {}
    found: dict[str, Any] = {"right_to_wrong": table.lost, "wrong_to_right": table.won, "num_pairs": table.num_pairs}
    if items == table.num_pairs:
        low, high = newcombe(table, alpha)
        found |= {"mcnemar_p": mcnemar_worse(table), "newcombe_low": low, "newcombe_high": high}
    return found


def _tabulate(pairs: Iterable[Pair]) -> tuple[Table, int]:
    cells = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    items = set()
    for pair in pairs:
        if pair.reference is None or pair.other is None:
            continue
        before, after = right(pair.reference), right(pair.other)
        if not isnan(before + after):
            cells[bool(before), bool(after)] += 1
            items.add(pair.row.cluster)
    table = Table(cells[True, True], cells[True, False], cells[False, True], cells[False, False])
    return table, len(items)


def mcnemar_worse(table: Table) -> float:
    """One-sided exact McNemar: P(Bin(lost + won, ½) ≥ lost), the chance of so many losses were both arms alike."""
    return float(betainc(table.lost, table.won + 1, 0.5)) if table.lost else 1.0


def _wilson(count: int, n: int, alpha: float) -> tuple[float, float]:
    """Wilson's score interval of a share, each end at 1 − `alpha`."""
    z = float(-ndtri(alpha))
    centre = (2 * count + z**2) / (2 * (n + z**2))
    reach = z * sqrt(4 * count * (1 - count / n) + z**2) / (2 * (n + z**2))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def newcombe(table: Table, alpha: float) -> tuple[float, float]:
    """Newcombe's method 10 for P(right before) − P(right now), each end at 1 − `alpha` (Stat. Med. 17:2635, 1998)."""
    n = table.num_pairs
    before, after = (table.both + table.lost) / n, (table.both + table.won) / n
    low1, high1 = _wilson(table.both + table.lost, n, alpha)
    low2, high2 = _wilson(table.both + table.won, n, alpha)
    phi = _correlation(table)
    difference = before - after

    def reach(one: float, other: float) -> float:
        return sqrt(max(0.0, one**2 - 2 * phi * one * other + other**2))

    return difference - reach(before - low1, high2 - after), difference + reach(high1 - before, after - low2)


def _correlation(table: Table) -> float:
    """Newcombe's φ̂, with his continuity correction where it is positive."""
    a, b, c, d = table.both, table.lost, table.won, table.neither
    product = float(np.prod([a + b, c + d, a + c, b + d], dtype=np.float64))
    if product == 0:
        return 0.0
    cross = float(a * d - b * c)
    if cross > 0:
        cross = max(cross - table.num_pairs / 2, 0.0)
    return cross / sqrt(product)
