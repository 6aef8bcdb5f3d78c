"""GPUs with their free memory and servers with their needs in, which server goes where out.

A berth is room set aside on one or more GPUs. Whoever needs room takes the GPUs that have most of it, so servers spread;
who finds none waits until others leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

USABLE = 0.97
"""Share of a GPU's free memory that is given away: what drivers and displays take at times is left alone."""


NOTHING: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True)
class Device:
    """A GPU by its index, as CUDA_VISIBLE_DEVICES counts them."""

    index: int
    name: str
    total_bytes: int
    free_bytes: int

    @property
    def usable_bytes(self) -> int:
        """What may be given away of it."""
        return int(self.free_bytes * USABLE)


@dataclass(frozen=True)
class Need:
    """Room that somebody needs on each of `num_devices` GPUs."""

    name: str
    num_devices: int
    """At least one."""
    fixed_bytes: int
    kv_bytes: int = 0
    """KV cache that the load wants."""
    least_kv_bytes: int = 0
    """KV cache below which a server does not start."""
    only: tuple[int, ...] = ()
    """The GPUs that it must be on; empty: any."""

    @property
    def total_bytes(self) -> int:
        """On each GPU."""
        return self.fixed_bytes + self.kv_bytes


@dataclass(frozen=True)
class Berth:
    """Room that was given: so many bytes of each of these GPUs."""

    devices: tuple[int, ...]
    size_bytes: int
    kv_bytes: int
    share: float = 0.0
    """`size_bytes` as a share of the smallest of these GPUs' memory."""


@dataclass(frozen=True)
class Placement:
    """Who is up at the same time, and who is not."""

    berths: Mapping[str, Berth]
    waiting: tuple[str, ...]
    """These fit once others have left."""
    impossible: tuple[str, ...]
    """These fit on no GPU that is theirs alone."""


def berth(devices: Sequence[Device], taken: Mapping[int, int], need: Need) -> Berth | None:
    """Room for `need` beside what is `taken` (index to bytes), or None where there is none just now."""
    free = {device.index: device.usable_bytes - taken.get(device.index, 0) for device in devices}
    allowed = need.only[: need.num_devices] or tuple(free)
    fitting = [index for index in allowed if index in free and free[index] >= need.total_bytes]
    if len(fitting) < need.num_devices:
        return None
    chosen = tuple(sorted(sorted(fitting, key=lambda index: (-free[index], index))[: need.num_devices]))
    smallest = min(device.total_bytes for device in devices if device.index in chosen)
    return Berth(chosen, need.total_bytes, need.kv_bytes, need.total_bytes / smallest)


def fitted(devices: Sequence[Device], need: Need, taken: Mapping[int, int] = NOTHING) -> Need | None:
    """`need` with the KV cache that it can have beside what is `taken` for good: all that it wants, else what is left.

    None where not even the least fits.
    """
    if berth(devices, taken, need) is not None:
        return need
    allowed = need.only[: need.num_devices] or tuple(device.index for device in devices)
    theirs = [device.usable_bytes - taken.get(device.index, 0) for device in devices if device.index in allowed]
    if len(theirs) < need.num_devices:
        return None
    left = sorted(theirs, reverse=True)[need.num_devices - 1] - need.fixed_bytes
    return replace(need, kv_bytes=left) if left >= need.least_kv_bytes else None


def place(devices: Sequence[Device], needs: Iterable[Need]) -> Placement:
    """Who can be up together, first come first served."""
    berths: dict[str, Berth] = {}
    waiting: list[str] = []
    impossible: list[str] = []
    taken: dict[int, int] = {}
    for need in needs:
        alone = fitted(devices, need)
        found = None if alone is None else berth(devices, taken, alone)
        if found is not None:
            berths[need.name] = found
            take(taken, found)
        else:
            (impossible if alone is None else waiting).append(need.name)
    return Placement(berths, tuple(waiting), tuple(impossible))


def take(taken: dict[int, int], given: Berth, *, back: bool = False) -> None:
    """Note in `taken` (index to bytes) that a berth was given, or given back."""
    for index in given.devices:
        taken[index] = taken.get(index, 0) + (-given.size_bytes if back else given.size_bytes)
