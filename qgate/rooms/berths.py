"""GPUs shared by the servers and quantizers of a run: each asks for room, gets it or waits. Held in memory; thread-safe.

Who is kept room for a whole run (the baseline, which the variants wait on while they are up) gets it before anybody else
asks, so that nobody waits on somebody who waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from qgate.errors import Interrupted, StartError
from qgate.io import proc
from qgate.io.leases import Leases
from qgate.sizing.ledger import GIB
from qgate.sizing.placement import Berth, Device, Need, berth, fitted, place, take

POLL_S = 0.5
"""How often somebody who waits looks whether the run is being interrupted."""
QUANTIZING_SHARE = 3
"""Memory of a quantizer in the size of the model's weights: float32, and a layer's activations and Hessians."""
QUANTIZING_BYTES = 2 * GIB


class Berths:
    """The room on a run's GPUs. `leases`: what other runs on this machine have given away."""

    def __init__(self, devices: Sequence[Device], leases: Leases | None = None) -> None:
        self.devices = tuple(devices)
        self._leases = leases
        self._changed = threading.Condition()
        self._taken: dict[int, int] = {}
        self._lasting: dict[int, int] = {}
        self._kept: dict[str, Berth] = {}

    def keep(self, lasting: Sequence[Need], others: Sequence[Need]) -> bool:
        """Keep room for all of `lasting`, if each of `others` fits beside them; else nothing, and False."""
        with self._deciding() as devices:
            found = place(devices, lasting)
            taken: dict[int, int] = {}
            for given in found.berths.values():
                take(taken, given)
            if found.waiting or found.impossible or not all(fitted(devices, need, taken) == need for need in others):
                return False
            self._taken, self._lasting, self._kept = dict(taken), taken, dict(found.berths)
        return True

    @contextmanager
    def hold(self, need: Need, on_wait: Callable[[], None] = lambda: None) -> Iterator[Berth]:
        """Room for `need` while the context lasts. Waits for it; `on_wait` is called once, where it must.

        Raises StartError where it does not fit even beside nobody but those who stay, Interrupted where the run ends
        meanwhile. Another run on the machine is waited for too.
        """
        if need.name in self._kept:
            yield self._kept[need.name]
            return
        given = self._wait(need, on_wait)
        try:
            yield given
        finally:
            with self._deciding():
                take(self._taken, given, back=True)
                self._changed.notify_all()

    def close(self) -> None:
        """Keep room for nobody any more: the run's servers are gone."""
        with self._deciding():
            for given in self._kept.values():
                take(self._taken, given, back=True)
            self._kept, self._lasting = {}, {}

    def most(self, index: int) -> int:
        """Bytes of a GPU that somebody who does not stay can have at most."""
        return sum(d.usable_bytes for d in self.devices if d.index == index) - self._lasting.get(index, 0)

    @contextmanager
    def _deciding(self) -> Iterator[tuple[Device, ...]]:
        """The GPUs without what other runs have been given of them; what is decided meanwhile is told to those."""
        with self._changed:
            if self._leases is None:
                yield self.devices
                return
            with self._leases.locked():
                others = self._leases.others()
                yield tuple(_without(device, others.get(device.index, 0)) for device in self.devices)
                self._leases.tell(self._taken)

    def _wait(self, need: Need, on_wait: Callable[[], None]) -> Berth:
        alone = fitted(self.devices, need, self._lasting)
        if alone is None:
            raise StartError(self._too_large(need), advice=_advice(need))
        told = False
        while True:
            with self._deciding() as devices:
                if (given := berth(devices, self._taken, alone)) is not None:
                    take(self._taken, given)
                    return given
            if proc.stopping():
                raise Interrupted(f"interrupted while {need.name} waited for room on a GPU")
            if not told:
                on_wait()
                told = True
            with self._changed:
                self._changed.wait(POLL_S)

    def _too_large(self, need: Need) -> str:
        theirs = [device.index for device in self.devices if not need.only or device.index in need.only]
        free = ", ".join(f"{index}: {self.most(index) / GIB:.1f} GiB" for index in theirs)
        least = (need.fixed_bytes + need.least_kv_bytes) / GIB
        gpus = "a GPU" if need.num_devices == 1 else f"each of {need.num_devices} GPUs"
        return f"{need.name} needs {least:.1f} GiB on {gpus} at least; free on GPU {free or 'none'}"


def _without(device: Device, given_bytes: int) -> Device:
    """A GPU of which others have been given so much, whether they hold it already or not."""
    return replace(device, free_bytes=max(0, min(device.free_bytes, device.total_bytes - given_bytes)))


def _advice(need: Need) -> str:
    if need.num_devices == 1 and not need.only:
        return "raise engine.options.tensor_parallel_size, lower max_num_batched_tokens, or free the GPU"
    return "free the GPUs (nvidia-smi shows who holds them), or lower engine.options.max_num_batched_tokens"


def quantizing(berths: Berths | None, name: str, weight_bytes: int) -> AbstractContextManager[object]:
    """Room for a quantizer, which takes the first GPU; as much as there can be, where the model is too large for more."""
    if berths is None:
        return nullcontext()
    first = berths.devices[0].index
    wanted = min(QUANTIZING_SHARE * weight_bytes + QUANTIZING_BYTES, berths.most(first))
    return berths.hold(Need(f"quantizing {name}", 1, max(0, wanted), only=(first,)))
