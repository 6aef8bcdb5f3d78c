"""Keys and values of the sequences in flight, and the attention over them. Part of the worker transformers_serve.

A model of transformers calls `SlotCache.update` and `attend` as it would its own cache and attention. Every sequence
owns a slot and fills it from position 0, so no sequence is ever padded on the left and none sees another's tokens.
Touches nothing but memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.cache_utils import Cache

ATTENTION = "qgate_grouped"
REFUSED = ("softcap", "s_aux", "position_bias")
"""Arguments of attentions that torch's kernel does not compute: better no answer than another model's."""


class SlotCache(Cache):
    """Per layer keys and values [slot, position, head, width]; slots 0..n-1 are in use."""

    def __init__(self, num_slots: int, capacity: int) -> None:
        super().__init__(layers=[])
        self.num_slots, self.capacity = num_slots, capacity
        self.lengths = torch.zeros(num_slots, dtype=torch.long)
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        self._targets: list[list[int]] | None = None
        self._new_lengths: list[int] = []
        self._rows = self._positions = torch.zeros(0, dtype=torch.long)
        self._span = 0

    def begin_prompts(self, lengths: list[int], targets: list[list[int]]) -> None:
        """The next forward holds prompts of these lengths, padded on the right; each goes to all its target slots."""
        self._targets, self._new_lengths = targets, lengths
        for length, slots in zip(lengths, targets, strict=True):
            self.lengths[slots] = length

    def begin_step(self, num_rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """The next forward holds one token for each of the first slots: its positions [n, 1], the mask [n, 1, 1, T]."""
        self._targets = None
        self._rows = torch.arange(num_rows, device=device)
        self._positions = self.lengths[:num_rows].to(device, copy=True)
        self.lengths[:num_rows] += 1
        self._span = int(self.lengths[:num_rows].max())
        mask = torch.arange(self._span, device=device) <= self._positions[:, None]
        return self._positions[:, None], mask[:, None, None, :]

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Store [rows, head, new, width]; returns what attention has to look at."""
        while len(self._keys) <= layer_idx:
            self._keys.append(self._allocate(keys))
            self._values.append(self._allocate(values))
        stored_keys, stored_values = self._keys[layer_idx], self._values[layer_idx]
        if self._targets is not None:
            for row, (length, slots) in enumerate(zip(self._new_lengths, self._targets, strict=True)):
                for slot in slots:
                    stored_keys[slot, :length] = keys[row, :, :length].transpose(0, 1)
                    stored_values[slot, :length] = values[row, :, :length].transpose(0, 1)
            return keys, values
        stored_keys[self._rows, self._positions] = keys[:, :, 0]
        stored_values[self._rows, self._positions] = values[:, :, 0]
        num_rows = len(self._rows)
        seen_keys, seen_values = stored_keys[:num_rows, : self._span], stored_values[:num_rows, : self._span]
        return seen_keys.transpose(1, 2), seen_values.transpose(1, 2)

    def _allocate(self, like: Tensor) -> Tensor:
        return like.new_zeros(self.num_slots, self.capacity, like.shape[1], like.shape[3])

    def move(self, source: int, target: int) -> None:
        """Hand the contents of one slot to another."""
        length = int(self.lengths[source])
        for stored in (*self._keys, *self._values):
            stored[target, :length] = stored[source, :length]
        self.lengths[target] = length

    def resize(self, num_slots: int, capacity: int, num_used: int) -> None:
        """Other slots, of another length; the first `num_used` keep what they hold."""
        for stored in (self._keys, self._values):
            for layer, old in enumerate(stored):
                new = old.new_zeros(num_slots, capacity, *old.shape[2:])
                shared = min(capacity, self.capacity)
                new[:num_used, :shared] = old[:num_used, :shared]
                stored[layer] = new
        lengths = torch.zeros(num_slots, dtype=torch.long)
        lengths[:num_used] = self.lengths[:num_used]
        self.num_slots, self.capacity, self.lengths = num_slots, capacity, lengths

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Positions come with every call, so there is no common length."""
        return 0


def attend(
    module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **given: Any
) -> tuple[Tensor, None]:
    """Scaled dot-product attention [rows, head, new, width] -> [rows, new, head, width].

    One new token per row: the query heads of a group become the rows of one product, so keys are never repeated.
    Whole prompts: causal. A sliding window is honoured in both.
    """
    for name in REFUSED:
        if given.get(name) is not None:
            raise NotImplementedError(f"attention with `{name}` is not supported by this engine")
    scale, window = given.get("scaling"), given.get("sliding_window")
    if attention_mask is not None:
        rows, heads, _, width = query.shape
        num_groups = key.shape[1]
        grouped = query.reshape(rows, num_groups, heads // num_groups, width)
        mask = _inside(attention_mask, window).expand(rows, 1, heads // num_groups, key.shape[2])
        mixed = scaled_dot_product_attention(grouped, key, value, attn_mask=mask, scale=scale)
        return mixed.reshape(rows, 1, heads, value.shape[3]), None
    grouped_heads = key.shape[1] != query.shape[1]
    length = query.shape[2]
    if window is not None and length > window:
        distance = torch.arange(length, device=query.device)
        distance = distance[:, None] - distance[None, :]
        band = (distance >= 0) & (distance < window)
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=band, scale=scale, enable_gqa=grouped_heads)
    else:
        mixed = scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=grouped_heads)
    return mixed.transpose(1, 2), None


def _inside(mask: Tensor, window: int | None) -> Tensor:
    """A mask [rows, 1, 1, T] of the filled positions, cut to the last `window` of each row."""
    if window is None or mask.shape[-1] <= window:
        return mask
    first = mask.sum(dim=-1, keepdim=True) - window
    return mask & (torch.arange(mask.shape[-1], device=mask.device) >= first)


def register() -> None:
    """Make `attend` known to transformers under the name ATTENTION."""
    AttentionInterface.register(ATTENTION, attend)
