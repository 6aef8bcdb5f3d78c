"""The fake engine with GPUs: it says what its servers take, and remembers who was up beside whom on which GPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pydantic import BaseModel

from qgate.engines.fake import FakeEngine
from qgate.ports import ServeJob, Session, Tool
from qgate.sizing.ledger import GIB, Ledger
from qgate.sizing.model import Model
from qgate.sizing.placement import Device


class SizedFake(FakeEngine):
    """Servers of `gib` each on `devices`."""

    def __init__(self, devices: tuple[Device, ...], gib: Mapping[str, float], split: tuple[int, int] = (1, 1)) -> None:
        super().__init__()
        self.jobs: list[ServeJob] = []
        self.together: list[frozenset[str]] = []
        self._devices, self._gib, self._split = devices, gib, split
        self._up: list[ServeJob] = []
        self._lock = threading.Lock()

    def devices(self, tool: Tool) -> tuple[Device, ...]:
        return self._devices

    def size(self, job: ServeJob, model: Model, device: Device | None) -> Ledger:
        weights = int(self._gib.get(job.name, 1.0) * GIB)
        return Ledger(1, weights, 2 * GIB, GIB, activations=0, scoring=0, graphs=0, context=0)

    def split(self, options: BaseModel) -> tuple[int, int]:
        return self._split

    @contextmanager
    def open(self, job: ServeJob) -> Iterator[Session]:
        with super().open(job) as session:
            with self._lock:
                self.jobs.append(job)
                self._up.append(job)
                self.together.append(frozenset(up.name for up in self._up))
                self._check()
            try:
                yield session
            finally:
                with self._lock:
                    self._up.remove(job)

    def _check(self) -> None:
        for device in self._devices:
            berths = [up.berth for up in self._up if up.berth is not None and device.index in up.berth.devices]
            assert sum(berth.size_bytes for berth in berths) <= device.free_bytes, self._up


def gpu(gib: float, index: int = 0) -> Device:
    """An empty GPU of this size."""
    return Device(index, "NVIDIA H200", int(gib * GIB), int(gib * GIB))
