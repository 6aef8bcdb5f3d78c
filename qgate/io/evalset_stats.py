"""What a set is made of: items in, counts out. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median

from qgate.io.evalset_cut import slices_of
from qgate.schemas.evalset import Evalset


@dataclass(frozen=True)
class Stats:
    """Counts of a set."""

    num_items: int
    num_twins: int
    num_references: int
    """Items that have a right answer in full."""
    prompt_chars: tuple[int, float, int]
    """Least, median and greatest length of a prompt in characters, all messages together."""
    counts: dict[str, dict[str, int]]
    """Slice key (kind, language, difficulty, scorer, then the set's own) to value to number of items, largest first."""


def stats(evalset: Evalset) -> Stats:
    """Counts of `evalset` over each of its slices."""
    counts: dict[str, Counter[str]] = {key: Counter() for key in ("kind", "language", "difficulty", "scorer")}
    for item in evalset.items:
        for key, value in {**slices_of(item), "scorer": item.scorer.name}.items():
            counts.setdefault(key, Counter())[value] += 1
    sizes = [sum(len(message.content) for message in item.messages) for item in evalset.items]
    return Stats(
        num_items=len(evalset.items),
        num_twins=sum(item.twin_of is not None for item in evalset.items),
        num_references=sum(item.reference is not None for item in evalset.items),
        prompt_chars=(min(sizes), median(sizes), max(sizes)),
        counts={
            key: dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))) for key, found in counts.items()
        },
    )
