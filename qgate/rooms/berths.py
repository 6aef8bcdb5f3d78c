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
from qgate.sizing.ledger import GIB
from qgate.sizing.placement import Berth, Device, Need, berth, fitted, place, take

POLL_S = 0.5
"""How often somebody who waits looks whether the run is being interrupted."""
QUANTIZING_SHARE = 3
"""Memory of a quantizer in the size of the model's weights: float32, and a layer's activations and Hessians."""
QUANTIZING_BYTES = 2 * GIB


class Berths:
    """The room on a run's GPUs."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = tuple(devices)
        self._changed = threading.Condition()
        self._taken: dict[int, int] = {}
        self._lasting: dict[int, int] = {}
        self._kept: dict[str, Berth] = {}

    def keep(self, lasting: Sequence[Need], others: Sequence[Need]) -> bool:
        """Keep room for all of `lasting`, if each of `others` fits beside them; else nothing, and False."""
        found = place(self.devices, lasting)
        if found.waiting or found.impossible:
            return False
        taken: dict[int, int] = {}
        for given in found.berths.values():
            take(taken, given)
        left = _less(self.devices, taken)
        if not all(fitted(left, need) == need for need in others):
            return False
        self._taken, self._lasting, self._kept = dict(taken), taken, dict(found.berths)
        return True

    @contextmanager
    def hold(self, need: Need, on_wait: Callable[[], None] = lambda: None) -> Iterator[Berth]:
        """Room for `need` while the context lasts. Waits for it; `on_wait` is called once, where it must.

        Raises StartError where it fits beside nobody but those who stay, Interrupted where the run ends meanwhile.
        """
        if need.name in self._kept:
            yield self._kept[need.name]
            return
        given = self._wait(need, on_wait)
        try:
            yield given
        finally:
            with self._changed:
                take(self._taken, given, back=True)
                self._changed.notify_all()

    def most(self, index: int) -> int:
        """Bytes of a GPU that somebody who does not stay can have at most."""
        return sum(d.usable_bytes for d in self.devices if d.index == index) - self._lasting.get(index, 0)

    def _wait(self, need: Need, on_wait: Callable[[], None]) -> Berth:
        alone = fitted(_less(self.devices, self._lasting), need)
        if alone is None:
            raise StartError(self._too_large(need), advice=_advice(need))
        told = False
        with self._changed:
            while (given := berth(self.devices, self._taken, alone)) is None:
                if proc.stopping():
                    raise Interrupted(f"interrupted while {need.name} waited for room on a GPU")
                if not told:
                    on_wait()
                    told = True
                self._changed.wait(POLL_S)
            take(self._taken, given)
        return given

    def _too_large(self, need: Need) -> str:
        free = ", ".join(
            f"{d.index}: {self.most(d.index) / GIB:.1f} GiB"
            for d in self.devices
            if not need.only or d.index in need.only
        )
        least = (need.fixed_bytes + need.least_kv_bytes) / GIB
        gpus = "a GPU" if need.num_devices == 1 else f"each of {need.num_devices} GPUs"
        return f"{need.name} needs {least:.1f} GiB on {gpus} at least; free on GPU {free or 'none'}"


def _less(devices: Sequence[Device], taken: dict[int, int]) -> list[Device]:
    """The devices without what is taken of what may be given away."""
    return [replace(device, free_bytes=device.free_bytes - _gross(device, taken)) for device in devices]


def _gross(device: Device, taken: dict[int, int]) -> int:
    """Free memory whose usable part is what was taken."""
    used = taken.get(device.index, 0)
    return -(-used * device.free_bytes // device.usable_bytes) if used else 0


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
