"""Evidence in, its rows laid out by arm and paired with the reference out. Touches nothing.

An arm is what one variant answered; the reference is the baseline's first run, the floor its further runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgate.judge.observe import came
from qgate.schemas.evidence import Evidence, Row
from qgate.schemas.recipe import BASELINE, Criterion

FLOOR = "baseline#1"
"""Name of the A/A arm: the baseline's further runs, all of them pooled."""

PairKey = tuple[str, str, str, int]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Pair:
    """A reference answer and another arm's answer to the same request; either may be absent, not both."""

    reference: Row | None
    other: Row | None

    @property
    def row(self) -> Row:
        """Whichever is there: item, profile and seed are the same."""
        row = self.reference or self.other
        assert row is not None
        return row


@dataclass(frozen=True)
class Scope:
    """Which answers a criterion speaks of."""

    evalset: str | None = None
    profile: str | None = None
    where: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, criterion: Criterion) -> Scope:
        """The scope that a recipe's criterion asks for."""
        evalset = None if criterion.evalset is None else criterion.evalset.partition("@")[0]
        return cls(evalset, criterion.profile, tuple(sorted(criterion.where.items())))

    def __contains__(self, row: Row) -> bool:
        return (
            self.evalset in {None, row.evalset}
            and self.profile in {None, row.profile}
            and all(slice_of(row, key) == value for key, value in self.where)
        )

    def __str__(self) -> str:
        words = [self.evalset or "all sets", self.profile, *(f"{key}={value}" for key, value in self.where)]
        return " · ".join(word for word in words if word)


def slice_of(row: Row, key: str) -> str | None:
    """The value of a row along a slice key: the item's own slices, or language, kind, difficulty, evalset, profile."""
    if key in row.slices:
        return row.slices[key]
    own = {
        "language": row.language,
        "kind": row.kind,
        "difficulty": str(row.difficulty),
        "evalset": row.evalset,
        "profile": row.profile,
        "temperature": f"{row.temperature:g}",
    }
    return own.get(key)


@dataclass(frozen=True)
class Laid:
    """An arm's pairs in the order of their keys, with int64[N] `request` and `cluster`, numbered over the whole run."""

    pairs: tuple[Pair, ...]
    request: Ints
    cluster: Ints

    def within(self, scope: Scope) -> Bools:
        """bool[N]: which pairs are in scope."""
        return np.array([pair.row in scope for pair in self.pairs], dtype=bool)

    @cached_property
    def written(self) -> Bools:
        """bool[N]: which pairs are of answers that are written, not of options that are only ranked."""
        return np.array([pair.row.written for pair in self.pairs], dtype=bool)

    @cached_property
    def absent(self) -> Bools:
        """bool[N]: of which pairs an answer, or both, did not come."""
        sides = ((pair.reference, pair.other) for pair in self.pairs)
        return np.array([any(row is None or not came(row) for row in pair) for pair in sides], dtype=bool)


def by_label(labels: Sequence[str | None], order: Callable[[str], Any] | None = None) -> dict[str, Bools]:
    """For each of the labels of N pairs, in order: bool[N], which pairs have it. A pair without a label has none."""
    column = np.array(labels, dtype=object)
    return {label: column == label for label in sorted({each for each in labels if each is not None}, key=order)}


@dataclass(frozen=True)
class Arms:
    """The rows of a run by arm. Replicates of the baseline pool into the floor; a variant's are its repeats."""

    reference: Mapping[PairKey, Row]
    replicates: Mapping[tuple[str, int], Mapping[PairKey, Row]]

    @classmethod
    def of(cls, evidence: Evidence) -> Arms:
        """Lay out the evidence; among rows of one arm and request, which must be one, the worst-scored counts."""
        arms: dict[tuple[str, int], dict[PairKey, Row]] = defaultdict(dict)
        for row in evidence.rows:
            arm = arms[row.variant, row.replicate]
            kept = arm.get(row.pair)
            if kept is None or _score(row) < _score(kept):
                arm[row.pair] = row
        return cls(reference=arms.get((BASELINE, 0), {}), replicates=dict(arms))

    @cached_property
    def requests(self) -> Mapping[PairKey, int]:
        """Every request of any arm, numbered in the order of their keys."""
        keys = {key for arm in self.replicates.values() for key in arm}
        return {key: number for number, key in enumerate(sorted(keys))}

    @cached_property
    def clusters(self) -> Mapping[tuple[str, str], int]:
        """Every independent item, numbered in the order of their names."""
        names = {row.cluster for arm in self.replicates.values() for row in arm.values()}
        return {name: number for number, name in enumerate(sorted(names))}

    def has(self, arm: str) -> bool:
        """Whether an arm (a variant's name, or FLOOR) was asked anything."""
        return any(self._parts(arm))

    def answered(self, arm: str) -> bool:
        """Whether any answer of an arm came."""
        return any(came(row) for part in self._parts(arm) for row in part.values())

    def num_absent(self, arm: str, scope: Scope) -> tuple[int, int]:
        """Requests in scope to which the reference or the arm wrote no answer, and all that are in scope."""
        laid = self.pairs(arm)
        inside = laid.within(scope) & laid.written
        return int((laid.absent & inside).sum()), int(inside.sum())

    @cached_property
    def _laid(self) -> dict[str, Laid]:
        return {}

    def pairs(self, arm: str) -> Laid:
        """Every request of the reference or the arm."""
        if arm not in self._laid:
            made: list[Pair] = []
            for part in self._parts(arm):
                keys = sorted(self.reference.keys() | part.keys())
                made += [Pair(self.reference.get(key), part.get(key)) for key in keys]
            request = np.array([self.requests[pair.row.pair] for pair in made], dtype=np.int64)
            cluster = np.array([self.clusters[pair.row.cluster] for pair in made], dtype=np.int64)
            self._laid[arm] = Laid(tuple(made), request, cluster)
        return self._laid[arm]

    def of_variant(self, variant: str) -> Iterable[Row]:
        """A variant's first answers."""
        return self.replicates.get((variant, 0), {}).values()

    def repeats(self, variant: str) -> tuple[Row, ...]:
        """A variant's answers to requests that it had answered before."""
        return tuple(
            row
            for (name, number), part in sorted(self.replicates.items(), key=lambda arm: arm[0])
            if name == variant and number > 0
            for row in part.values()
        )

    def _parts(self, arm: str) -> list[Mapping[PairKey, Row]]:
        if arm != FLOOR:
            return [self.replicates.get((arm, 0), {})]
        parts = sorted(self.replicates.items(), key=lambda part: part[0])
        return [part for (name, number), part in parts if name == BASELINE and number > 0]


def _score(row: Row) -> float:
    return -1.0 if row.score is None else row.score
