"""Token-level metrics: two arms' scores of the same answers in, harms per token out. Touches nothing.

All logarithms are natural. The baseline is p, the other arm q; both were forced through the same answers: the
baseline's own, or right ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from qgate.judge.arms import Scope
from qgate.judge.resample import Floats
from qgate.schemas.answers import TokenScores
from qgate.schemas.evidence import Row
from qgate.schemas.recipe import REFERENCES

SENTINEL = -1000.0
"""Log-probabilities below this stand for values that are not finite (vLLM writes −9999)."""
BLOCK_POSITIONS = 4_096
"""Positions compared at a time: many enough to be quick, few enough to stay in the cache."""


@dataclass(frozen=True)
class TokenTable:
    """T token positions of A answers, in the answers' order.

    Per position: `answer` int64[T] (index into `rows`), `position` int64[T], float64[T] `kl` (nats, a lower bound),
    `disagree` (1 where the likeliest tokens differ), `drop` (p − q at the token), `log_drop` (ln p − ln q at the token)
    and `covered` (the baseline's mass in tokens that both arms listed). NaN where the other arm was not finite.
    """

    rows: tuple[Row, ...]
    answer: NDArray[np.int64]
    position: NDArray[np.int64]
    kl: Floats
    disagree: Floats
    drop: Floats
    log_drop: Floats
    covered: Floats
    num_expected: int
    """Answers that the baseline scored; `rows` are those that the other arm scored too, token for token."""
    lost: tuple[Row, ...] = ()
    """The others; a table that was stored has their number alone."""

    @cached_property
    def cluster_of_answer(self) -> NDArray[np.int64]:
        """int64[A]: the item of each answer, numbered in the order of their names."""
        number = {name: index for index, name in enumerate(sorted({row.cluster for row in self.rows}))}
        return np.array([number[row.cluster] for row in self.rows], dtype=np.int64)

    @cached_property
    def cluster(self) -> NDArray[np.int64]:
        """int64[T]: the item of each position."""
        return self.cluster_of_answer[self.answer]

    def within(self, scope: Scope) -> NDArray[np.bool_]:
        """bool[A]: which answers are in scope."""
        return np.array([row in scope for row in self.rows], dtype=bool)

    def num_lost(self, scope: Scope) -> int:
        """Answers in scope that the other arm did not score; those of which it is not known count."""
        return sum(row in scope for row in self.lost) + self.num_expected - len(self.rows) - len(self.lost)

    @property
    def num_not_finite(self) -> int:
        """Positions at which the other arm gave no finite number."""
        return int((np.isnan(self.log_drop) | np.isnan(self.kl)).sum())


def reference_rows(rows: Iterable[Row]) -> list[Row]:
    """Of each item one row, as which its right answer is scored: what is true of an answer to it stands in none."""
    items = {(row.evalset, row.item): row for row in rows}
    return [replace(row, profile=REFERENCES, seed=0, temperature=0.0, completion_tokens=None) for row in items.values()]


def table(
    rows: Sequence[Row], reference: Mapping[str, TokenScores], other: Mapping[str, TokenScores]
) -> TokenTable | None:
    """Compare two arms' scores on the reference `rows`; None where no answer was scored by both."""
    scored = {row.request_id: row for row in sorted(rows, key=lambda row: row.pair) if row.request_id in reference}
    usable = [key for key in scored if key in other and _same_tokens(reference[key], other[key])]
    if not usable:
        return None
    kept = set(usable)
    counts = [len(reference[key].token_ids) for key in usable]
    parts = [_compare(*block) for block in _blocks([(reference[key], other[key]) for key in usable])]
    kl, disagree, drop, log_drop, covered = (np.concatenate(column) for column in zip(*parts, strict=True))
    return TokenTable(
        rows=tuple(scored[key] for key in usable),
        answer=np.repeat(np.arange(len(usable)), counts),
        position=np.concatenate([np.arange(count) for count in counts]),
        kl=kl,
        disagree=disagree,
        drop=drop,
        log_drop=log_drop,
        covered=covered,
        num_expected=len(scored),
        lost=tuple(row for key, row in scored.items() if key not in kept),
    )


def _same_tokens(one: TokenScores, other: TokenScores) -> bool:
    return len(one.token_ids) > 0 and np.array_equal(one.token_ids, other.token_ids)


def _blocks(pairs: Sequence[tuple[TokenScores, TokenScores]]) -> Iterator[tuple[TokenScores, TokenScores]]:
    """Answers one after the other, joined to blocks of BLOCK_POSITIONS or a little more, lists of one length each."""

    def lengths(pair: tuple[TokenScores, TokenScores]) -> tuple[int, int]:
        return (pair[0].top_ids.shape[1], pair[1].top_ids.shape[1])

    block: list[tuple[TokenScores, TokenScores]] = []
    size = 0
    for pair in pairs:
        if block and (size >= BLOCK_POSITIONS or lengths(pair) != lengths(block[0])):
            yield _join([base for base, _ in block]), _join([other for _, other in block])
            block, size = [], 0
        block.append(pair)
        size += len(pair[0].token_ids)
    if block:
        yield _join([base for base, _ in block]), _join([other for _, other in block])


def _join(answers: Sequence[TokenScores]) -> TokenScores:
    return TokenScores(
        id=answers[0].id,
        token_ids=np.concatenate([each.token_ids for each in answers]),
        logprobs=np.concatenate([each.logprobs for each in answers]),
        top_ids=np.concatenate([each.top_ids for each in answers]),
        top_logprobs=np.concatenate([each.top_logprobs for each in answers]),
    )


def _compare(base: TokenScores, other: TokenScores) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    p, q = base.logprobs.astype(np.float64), other.logprobs.astype(np.float64)
    kl, covered = kl_lower_bound(base, other)
    usable = np.isfinite(p) & (p > SENTINEL) & np.isfinite(q) & (q > SENTINEL)
    usable &= ~np.isnan(other.top_logprobs).any(-1) & ~np.isnan(base.top_logprobs).any(-1)
    listed = base.top_ids.shape[1] > 0 and other.top_ids.shape[1] > 0
    disagree = (base.top_ids[:, 0] != other.top_ids[:, 0]).astype(np.float64) if listed else np.full(len(p), np.nan)
    drop = np.where(usable, np.exp(np.minimum(p, 0)) - np.exp(np.minimum(q, 0)), np.nan)
    log_drop = np.where(usable, p - q, np.nan)
    # where one lists nothing, KL ≥ 0 says nothing
    both_list = (base.top_logprobs > SENTINEL).any(-1) & (other.top_logprobs > SENTINEL).any(-1)
    return np.where(usable & both_list, kl, np.nan), np.where(usable, disagree, np.nan), drop, log_drop, covered


def kl_lower_bound(base: TokenScores, other: TokenScores) -> tuple[Floats, Floats]:
    """A lower bound of KL(p ‖ q) per position, nats, and the mass of p in the tokens compared one by one.

    Merging tokens into cells can only lower the divergence (log-sum inequality). Cells: each token that both lists hold
    (the forced token counts as listed); the tokens A that only p lists, one cell, whose mass under q is unknown but at
    most min(|A| · least listed q, 1 − Σ listed q); the rest. Of what that unknown mass can be, the least divergence.
    """
    p, q_listed = _probabilities(base.top_logprobs), _probabilities(other.top_logprobs)
    q, shared = _at(np.ascontiguousarray(base.top_ids.T), other, q_listed)
    shared &= p > 0
    only_p = (p > 0) & ~shared
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.where(shared, p * np.log(p / q), 0.0).sum(0)
    p_shared, q_shared = (p * shared).sum(0), np.minimum((q * shared).sum(0), 1.0)
    p_only = (p * only_p).sum(0)
    p_rest = np.clip(1.0 - p_shared - p_only, 0.0, 1.0)
    least = np.where(q_listed > 0, q_listed, np.inf).min(0, initial=np.inf)
    spare = np.clip(1.0 - q_shared, 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        cap = np.minimum(only_p.sum(0) * least, np.clip(1.0 - q_listed.sum(0), 0.0, 1.0))
        even = np.where(p_only + p_rest > 0, spare * p_only / (p_only + p_rest), 0.0)
        q_only = np.minimum(np.where(np.isfinite(cap), cap, spare), even)
        tail = _cell(p_only, q_only) + _cell(p_rest, spare - q_only)
    return np.maximum(exact + tail, 0.0), p_shared


TINY = 1e-6
"""Mass below which a cell is rounding of the lists' float32, not a finding."""


def _cell(p: Floats, q: Floats) -> Floats:
    return np.where(p > TINY, p * np.log(np.maximum(p, TINY) / np.maximum(q, TINY)), 0.0)


def _probabilities(logprobs: NDArray[np.float32]) -> Floats:
    """float64[K, T] of float32[T, K]; 0 where nothing is listed or the number is not finite."""
    logs = np.ascontiguousarray(logprobs.T, dtype=np.float64)
    return np.where(np.isfinite(logs) & (logs > SENTINEL), np.exp(np.minimum(logs, 0.0)), 0.0)


def _at(ids: NDArray[np.int32], other: TokenScores, q_listed: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """q float64[K, T] at p's listed ids int32[K, T], and whether it is known."""
    q = np.zeros(ids.shape)
    for listed, mass in zip(other.top_ids.T, q_listed, strict=True):  # few: quicker than all against all at once
        np.copyto(q, mass, where=ids == listed)
    known = q > 0
    forced = np.exp(np.clip(other.logprobs.astype(np.float64), SENTINEL, 0.0))
    is_forced = (ids == other.token_ids) & ~known & np.isfinite(other.logprobs) & (forced > 0)
    return np.where(is_forced, forced, q), known | is_forced
