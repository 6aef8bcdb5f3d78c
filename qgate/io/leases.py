"""Room on GPUs that qgate's processes on this machine have given away, so that two runs never give the same twice.

One file of JSON under a lock, in the user's part of the temporary folder; what a process left that has ended is not
counted. Touches the disk.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
from filelock import FileLock

from qgate.io.files import read_object, write_text

FILE = "given.json"
CLOCK_S = 2.0
"""Start times are counted from the boot, whose time shifts a little as the clock is set."""


class Leases:
    """What this process has given away, beside what others have. Use it within `locked`."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir()) / f"qgate-gpus-{os.getuid()}"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = FileLock(self._folder / "lock", thread_local=False)
        self._me = f"{os.getpid()} {psutil.Process().create_time()} {id(self)}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else reads or gives meanwhile."""
        with self._lock:
            yield

    def others(self) -> dict[int, int]:
        """Bytes of each GPU that other runs have given away."""
        found: dict[int, int] = {}
        for owner, given in read_object(self._folder / FILE).items():
            if owner != self._me and _lives(owner):
                for index, size_bytes in given.items():
                    found[int(index)] = found.get(int(index), 0) + int(size_bytes)
        return found

    def tell(self, given: Mapping[int, int]) -> None:
        """All that this run has given away now, by GPU. Raises StoreError."""
        told = read_object(self._folder / FILE)
        mine = {str(index): size_bytes for index, size_bytes in given.items() if size_bytes}
        wanted = {owner: each for owner, each in told.items() if owner != self._me and _lives(owner)}
        wanted |= {self._me: mine} if mine else {}
        if wanted != told:  # who waits for room asks twice a second
            write_text(self._folder / FILE, json.dumps(wanted))


def _lives(owner: str) -> bool:
    """Whether the very process still runs: process ids are used again."""
    pid, created, _ = owner.split()
    try:
        return abs(psutil.Process(int(pid)).create_time() - float(created)) < CLOCK_S
    except psutil.Error:
        return False
