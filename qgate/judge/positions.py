"""Metrics by position in the answer: token scores where there are any, first differences and defects. Touches nothing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from qgate.judge.arms import FLOOR
from qgate.judge.axes import POSITIONS, bucket
from qgate.judge.cells import Cell, assemble, departs, harm_cell, token_cell
from qgate.judge.compare import MEAN_TOKEN_METRICS, Case
from qgate.judge.criteria import RowMetric, Support, length
from qgate.judge.harms import read
from qgate.judge.resample import Floats
from qgate.judge.sample import Sample, of_tokens
from qgate.judge.tokens import TokenTable
from qgate.schemas.evidence import Row
from qgate.schemas.verdict import Breakdown

AXIS = "output position"
Bucket = tuple[int, int]
"""First position in it, and the first after it."""


def by_position(case: Case, variant: str) -> list[Breakdown]:
    """Every metric that has a position, for one variant."""
    return [*_of_answers(case, variant), *_of_tokens(case, variant)]


def _buckets(num_tokens: int) -> list[Bucket]:
    """The buckets that answers of up to `num_tokens` tokens reach."""
    edges = [edge for edge in POSITIONS if edge < num_tokens]
    return list(pairwise([*edges, num_tokens])) if edges else []


def _of_answers(case: Case, variant: str) -> list[Breakdown]:
    """Of the answers that get so far: the share that has left the reference by then, and that has a defect begin there."""
    lengths = [length(row) for row in case.arms.reference.values()]
    longest = max((int(each) for each in lengths if not np.isnan(each)), default=0)
    buckets = _buckets(longest)
    if len(buckets) < 2:
        return []
    made = []
    for metric, of_bucket in (("output_disagreement", _changed_by), ("defect_rate", _defect_in)):
        cells = [_answer_cell(case, variant, each, of_bucket(each), len(buckets)) for each in buckets]
        made.append(assemble(variant, metric, AXIS, cells))
    return made


def _answer_cell(case: Case, variant: str, at: Bucket, metric: RowMetric, num_labels: int) -> Cell:
    harms, noise = (read(case.arms.pairs(arm), metric) for arm in (variant, FLOOR))
    over = harms.over(noise).sample()
    leaves = departs(case, over, 0.0, num_labels)
    return harm_cell(bucket(at[0], POSITIONS), harms.sample(), noise.sample(), departs=leaves)


def _changed_by(at: Bucket) -> RowMetric:
    def harm(reference: Row, other: Row) -> float:
        if other.identical is None:
            return float("nan")
        return float(other.first_divergence is not None and other.first_divergence < at[1])

    return RowMetric(harm, lambda row: _reaches(row, at), Support(0, 1))


def _defect_in(at: Bucket) -> RowMetric:
    """Defects are found at characters; a character's token is reckoned from the answer's own tokens a character."""

    def harm(reference: Row, other: Row) -> float:
        tokens = length(other) / max(len(other.text or ""), 1)
        return float(any(at[0] <= int(hit.start * tokens) < at[1] for hit in other.defects))

    return RowMetric(harm, lambda row: _reaches(row, at), Support(0, 1))


def _reaches(row: Row, at: Bucket) -> float:
    """0 where the answer gets to the bucket, NaN (not in question) where it is shorter."""
    return 0.0 if length(row) > at[0] else float("nan")


def _of_tokens(case: Case, variant: str) -> list[Breakdown]:
    tokens, noise = case.tokens.get(variant), case.tokens.get(FLOOR)
    if tokens is None:
        return []
    buckets = _buckets(int(tokens.position.max()) + 1)
    made = []
    for metric in MEAN_TOKEN_METRICS:
        cells = [
            token_cell(
                case,
                bucket(at[0], POSITIONS),
                _at(tokens, metric, at),
                None if noise is None else _at(noise, metric, at),
                len(buckets),
            )
            for at in buckets
        ]
        made.append(assemble(variant, metric, AXIS, cells))
    return made


def _at(tokens: TokenTable, metric: str, at: Bucket) -> Sample:
    harms, support = MEAN_TOKEN_METRICS[metric]
    here: Floats = np.where((tokens.position >= at[0]) & (tokens.position < at[1]), harms(tokens), np.nan)
    return of_tokens(tokens, here, np.ones(len(tokens.rows), dtype=bool), support)
