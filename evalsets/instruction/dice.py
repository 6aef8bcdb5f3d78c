"""Draws that are the same on every machine and Python: a seed in, choices out. Touches nothing.

Built on `random.Random(text).random()` alone, which Python promises to keep for a seed; `shuffle`, `choice` and
`sample` carry no such promise.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """A stream of draws named by its seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def chance(self, share: float) -> bool:
        """True in `share` of all draws."""
        return self._random() < share

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, options: Sequence[T]) -> T:
        """One of `options`."""
        return options[self.between(0, len(options) - 1)]

    def several(self, options: Sequence[T], num: int) -> list[T]:
        """`num` different ones of `options`, in random order."""
        left = list(options)
        return [left.pop(self.between(0, len(left) - 1)) for _ in range(num)]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """All of `options` in random order."""
        return self.several(options, len(options))
