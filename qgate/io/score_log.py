"""Token scores on disk as they arrive: numbered npz parts, each whole or not there. Touches the disk.

A part holds the answers of about `PART_POSITIONS` positions: ids, lengths, and the concatenated arrays of TokenScores.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgate.errors import ArtefactError
from qgate.io.files import write_bytes
from qgate.schemas.answers import TokenScores

PART_POSITIONS = 16_384


class ScoreLog:
    """Collects scores into parts under `folder`. Opening it tells which ids are there already."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        parts = _parts(folder)
        self.done = {str(key) for path in parts for key in _columns(path, "ids")["ids"]}
        self._next = len(parts)
        self._waiting: list[TokenScores] = []
        self._positions = 0

    def append(self, scores: TokenScores) -> None:
        """Take one answer's scores; they are on disk when the part is full or after `flush`. Raises StoreError."""
        self._waiting.append(scores)
        self._positions += len(scores.token_ids)
        if self._positions >= PART_POSITIONS:
            self.flush()

    def flush(self) -> None:
        """Write what waits. Raises StoreError."""
        if not self._waiting:
            return
        buffer = io.BytesIO()
        np.savez(
            buffer,
            ids=np.array([s.id for s in self._waiting]),
            prompts=np.array([s.prompt_token_ids_sha256 or "" for s in self._waiting]),
            lengths=np.array([len(s.token_ids) for s in self._waiting], dtype=np.int64),
            token_ids=np.concatenate([s.token_ids for s in self._waiting]),
            logprobs=np.concatenate([s.logprobs for s in self._waiting]),
            top_ids=np.concatenate([s.top_ids for s in self._waiting]),
            top_logprobs=np.concatenate([s.top_logprobs for s in self._waiting]),
        )
        write_bytes(self.folder / f"part-{self._next:05d}.npz", buffer.getvalue())
        self.done |= {s.id for s in self._waiting}
        self._next += 1
        self._waiting, self._positions = [], 0


def read_scores(folder: Path) -> Iterator[TokenScores]:
    """Every answer's scores of an object. Raises ArtefactError."""
    for path in _parts(folder):
        yield from _unpack(_columns(path))


def num_positions(folder: Path) -> int:
    """Tokens that were scored in all. Raises ArtefactError."""
    return sum(int(_columns(path, "lengths")["lengths"].sum()) for path in _parts(folder))


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.npz"))


def _columns(path: Path, *names: str) -> dict[str, NDArray[Any]]:
    """The named arrays of a part, or all."""
    try:
        with np.load(path, allow_pickle=False) as part:
            return {name: part[name] for name in names or part.files}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ArtefactError(f"{path} is damaged: {error}", advice=f"delete {path.parent}") from error


def _unpack(columns: dict[str, NDArray[Any]]) -> Iterator[TokenScores]:
    ends = np.cumsum(columns["lengths"])
    for index, end in enumerate(ends):
        at = slice(int(end - columns["lengths"][index]), int(end))
        yield TokenScores(
            id=str(columns["ids"][index]),
            token_ids=columns["token_ids"][at],
            logprobs=columns["logprobs"][at],
            top_ids=columns["top_ids"][at],
            top_logprobs=columns["top_logprobs"][at],
            prompt_token_ids_sha256=str(columns["prompts"][index]) or None,
        )
