"""A ledger and what the server reported at its start in, what differs by more than it may out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qgate.sizing.cache import CacheShape
from qgate.sizing.ledger import GIB, Ledger

TOLERANCE = 0.15
SLACK_BYTES = GIB // 10
"""Differences below this are rounding: small models' tables and buffers."""


@dataclass(frozen=True)
class Difference:
    """One entry, as the ledger has it and as the server reported it."""

    what: str
    expected_bytes: float
    reported_bytes: float
    is_bound: bool = False
    """Whether the ledger's entry is an upper estimate: less than it is no surprise."""

    @property
    def share(self) -> float:
        """By how much the report is above the ledger, as a share of the ledger's entry."""
        return self.reported_bytes / self.expected_bytes - 1 if self.expected_bytes else float("inf")

    @property
    def is_large(self) -> bool:
        """Whether somebody should know."""
        above = self.reported_bytes - self.expected_bytes
        apart = above if self.is_bound else abs(above)
        return apart > SLACK_BYTES and apart > TOLERANCE * self.expected_bytes

    def __str__(self) -> str:
        expected, reported = self.expected_bytes / GIB, self.reported_bytes / GIB
        return f"the ledger has {expected:.2f} GiB for {self.what}, the server reports {reported:.2f} GiB"


def differences(ledger: Ledger, shape: CacheShape, reported: Mapping[str, float]) -> tuple[Difference, ...]:
    """Every entry that both have.

    `reported`, where the server tells: `model_gib`, `activations_gib`, `kv_cache_gib` with `max_concurrency` of
    `max_model_len` tokens each (which give the bytes of a sequence).
    """
    return tuple(_entries(ledger, shape, reported))


def _entries(ledger: Ledger, shape: CacheShape, reported: Mapping[str, float]) -> Iterator[Difference]:
    if "model_gib" in reported:
        yield Difference("weights", ledger.weights, reported["model_gib"] * GIB)
    if "activations_gib" in reported:
        yield Difference("activations", ledger.activations, reported["activations_gib"] * GIB, is_bound=True)
    if (
        {"kv_cache_gib", "max_concurrency", "max_model_len"} <= reported.keys()
        and reported["max_model_len"] <= shape.shortest_window  # beyond it vLLM counts steps in flight too
    ):
        sequences = reported["max_concurrency"] * shape.sequence_bytes(int(reported["max_model_len"]))
        yield Difference("what the KV cache holds", sequences, reported["kv_cache_gib"] * GIB)
