"""What is known of a checkpoint before anything is judged: headers, files, settings, scales. Data only.

The readers are in qgate.io; every check in this package takes a `Facts` and gives findings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

FLOATS = frozenset({"F64", "F32", "F16", "BF16"})


@dataclass(frozen=True)
class Header:
    """One stored tensor, as its file's header says."""

    dtype: str
    shape: tuple[int, ...]
    file: str
    size_bytes: int


@dataclass(frozen=True)
class ShardFault:
    """Something wrong with the weight files as files."""

    code: str
    place: str
    detail: str


@dataclass(frozen=True)
class Values:
    """What was counted over a tensor's values."""

    num: int
    num_nonfinite: int
    num_zero: int
    num_negative: int
    num_denormal: int
    """Nonzero, but below the smallest normal number of the type: kernels that flush to zero lose them."""
    minimum: float
    maximum: float
    """Both over the finite values; NaN where there is none."""


@dataclass(frozen=True)
class GroupIndex:
    """What a `g_idx` holds."""

    lowest: int
    highest: int
    is_in_order: bool
    """Whether the groups never fall from one column to the next."""
    largest: int
    """Columns in the group that has most."""
    columns: bytes = field(default=b"", repr=False)
    """Each column's group as an int32."""


@dataclass(frozen=True)
class TokenizerFacts:
    """The tokenizer's files, decoded; a missing one is empty."""

    files: frozenset[str] = frozenset()
    tokenizer: Mapping[str, Any] = field(default_factory=dict)
    """tokenizer.json."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """tokenizer_config.json."""
    templates: Mapping[str, str] = field(default_factory=dict)
    """Name to chat template; `default` is the one that is used."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """File name to why it could not be decoded."""


@dataclass(frozen=True)
class Facts:
    """One checkpoint."""

    config: Mapping[str, Any]
    headers: Mapping[str, Header] = field(default_factory=dict)
    files: frozenset[str] = frozenset()
    """Names of all files, relative to the directory."""
    shard_faults: tuple[ShardFault, ...] = ()
    tokenizer: TokenizerFacts = field(default_factory=TokenizerFacts)
    generation: Mapping[str, Any] = field(default_factory=dict)
    """generation_config.json."""
    mistral: Mapping[str, Any] = field(default_factory=dict)
    """params.json, which vLLM takes for the config where there are consolidated weights."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Name of a file beside the tokenizer's to why it could not be decoded."""
    values: Mapping[str, Values] = field(default_factory=dict)
    """By tensor: scales, zero points, norms and biases."""
    zero_points: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """By tensor of zero points: how many there are of each value, unpacked."""
    group_indices: Mapping[str, GroupIndex] = field(default_factory=dict)
    """By `g_idx`."""
    blank: frozenset[str] = frozenset()
    """Matrices of weights with nothing but zero bytes in their middle."""
    integers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Contents of small integer tensors (`weight_shape`)."""

    @cached_property
    def text_config(self) -> Mapping[str, Any]:
        """The language model's own part of config.json: all of it, or its `text_config`."""
        inner = self.config.get("text_config")
        return {**self.config, **inner} if isinstance(inner, dict) else self.config

    @property
    def is_uneven(self) -> bool:
        """Whether it was pruned layer by layer (Nemotron's `block_configs`): layers may have fewer experts, or nothing."""
        return "block_configs" in self.config
