"""Token metrics along every axis that parts answers: two arms' token tables in, breakdowns out. Touches nothing.

Positions are summed up by answer once, since an axis parts answers, and there are many axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qgate.judge.arms import FLOOR, Bools, by_label
from qgate.judge.axes import Axis
from qgate.judge.cells import assemble, token_cell
from qgate.judge.compare import MEAN_TOKEN_METRICS, Case
from qgate.judge.criteria import Support
from qgate.judge.resample import Floats
from qgate.judge.sample import Sample, of_items
from qgate.judge.tokens import TokenTable
from qgate.schemas.recipe import REFERENCES
from qgate.schemas.verdict import Breakdown


@dataclass(frozen=True)
class _Summed:
    """A token metric of A answers: float64[A] sums over an answer's positions, their numbers, and int64[A] its item."""

    sums: Floats
    counts: Floats
    cluster: NDArray[np.int64]
    support: Support

    @classmethod
    def of(cls, tokens: TokenTable, metric: str) -> _Summed:
        harms_of, support = MEAN_TOKEN_METRICS[metric]
        harms, size = harms_of(tokens), len(tokens.rows)
        known = np.isfinite(harms)
        sums = np.bincount(tokens.answer[known], weights=harms[known], minlength=size)
        counts = np.bincount(tokens.answer[known], minlength=size)
        return cls(sums.astype(np.float64), counts.astype(np.float64), tokens.cluster_of_answer, support)

    def sample(self, inside: Bools) -> Sample:
        """The mean over items of the mean over an item's positions in the answers `inside`, as `sample.of_tokens` has it."""
        sums = np.bincount(self.cluster[inside], weights=self.sums[inside])
        counts = np.bincount(self.cluster[inside], weights=self.counts[inside])
        some = counts > 0
        return of_items(sums[some] / counts[some], self.support, int(counts.sum()))


OF_REFERENCES = f" · {REFERENCES}"
"""Follows the name of an axis along which right answers are parted, not answers."""


def by_axis(case: Case, variant: str, axes: Sequence[Axis]) -> Iterator[Breakdown]:
    """Every mean over tokens of one variant by each axis along which its scored answers, own and right, can be parted."""
    yield from _of(case, case.tokens, variant, axes)
    for made in _of(case, case.references, variant, [axis for axis in axes if "temperature" not in axis.name]):
        yield made.model_copy(update={"axis": made.axis + OF_REFERENCES})


def _of(case: Case, tables: Mapping[str, TokenTable], variant: str, axes: Sequence[Axis]) -> Iterator[Breakdown]:
    tokens, noise = tables.get(variant), tables.get(FLOOR)
    if tokens is None:
        return
    splits = [(axis.name, _parts(tokens, axis), {} if noise is None else _parts(noise, axis)) for axis in axes]
    for metric in MEAN_TOKEN_METRICS:
        ours, floor = _Summed.of(tokens, metric), None if noise is None else _Summed.of(noise, metric)
        for name, parts, floors in splits:
            cells = [
                token_cell(
                    case,
                    label,
                    ours.sample(inside),
                    floor.sample(floors[label]) if floor is not None and label in floors else None,
                    len(parts),
                )
                for label, inside in parts.items()
            ]
            if len(cells) > 1 and any(cell.num for cell in cells):
                yield assemble(variant, metric, name, cells)


def _parts(tokens: TokenTable, axis: Axis) -> dict[str, Bools]:
    return by_label([axis.label(row) for row in tokens.rows], axis.order)
