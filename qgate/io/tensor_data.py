"""Bytes of stored tensors, mapped into memory a file at a time: nothing is read before it is looked at. Reads the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qgate.inspection import numbers
from qgate.io.tensors import Tensor

STEP_NUMBERS = 1 << 16
"""Numbers that one step holds: arrays of 256 kB stay in a core's cache and are not mapped anew each time."""


def some_rows(height: int, width: int, multiple: int = 1) -> Iterator[slice]:
    """A matrix's rows, some at a time: a multiple of so many in each step but the last."""
    rows = max(multiple, STEP_NUMBERS // max(1, width) // multiple * multiple)
    yield from (slice(start, min(start + rows, height)) for start in range(0, height, rows))


class TensorData:
    """The tensors of one checkpoint, by name."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = tensors
        self._maps: dict[Path, NDArray[np.uint8]] = {}

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor's bytes; they are read from disk as they are touched."""
        tensor = self.tensors[name]
        if tensor.file not in self._maps:
            self._maps[tensor.file] = np.memmap(tensor.file, dtype=np.uint8, mode="r").view(np.ndarray)
        found = self._maps[tensor.file][tensor.start : tensor.start + tensor.size_bytes]
        return found if tensor.start % 8 == 0 else found.copy()

    def floats(self, name: str) -> NDArray[np.float32]:
        """The tensor as float32. Raises ValueError for types that are not known."""
        tensor = self.tensors[name]
        return numbers.floats(self.raw(name), tensor.dtype, tensor.shape)

    def rows(self, name: str, rows: slice) -> NDArray[np.float32]:
        """Some rows of a matrix, or numbers of a vector, as float32. Raises ValueError for types that are not known."""
        tensor = self.tensors[name]
        width = tensor.size_bytes // tensor.shape[0]
        raw = self.raw(name)[rows.start * width : rows.stop * width]
        return numbers.floats(raw, tensor.dtype, (rows.stop - rows.start, *tensor.shape[1:]))

    def decoded(self, name: str) -> NDArray[np.generic]:
        """The tensor as it is stored. Raises ValueError for types that are not known."""
        tensor = self.tensors[name]
        return numbers.decode(self.raw(name), tensor.dtype, tensor.shape)
