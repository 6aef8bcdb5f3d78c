"""A prepared recipe and some GPUs in, every server's memory and place out, and what does not fit. Makes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qgate.ports import Sized
from qgate.rooms.memory import Server, check_split, is_split, ledgers, models
from qgate.rooms.obtain import obtain_model
from qgate.rooms.prepare import Prepared
from qgate.rooms.variants import baseline_key
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.recipe import BASELINE
from qgate.schemas.variant import GgufSource
from qgate.sizing.ledger import GIB, Ledger
from qgate.sizing.placement import Device, Need, Placement, fitted, place

FEWER = "lower engine.concurrency or max_num_batched_tokens, set kv_cache_dtype: fp8"
SPLIT = "raise tensor_parallel_size"


@dataclass(frozen=True)
class Row:
    """One server. `place`: its GPUs, or why it has none."""

    name: str
    ledger: Ledger
    place: str
    is_estimate: bool


@dataclass(frozen=True)
class Forecast:
    """All servers of a run on some GPUs."""

    rows: tuple[Row, ...]
    warnings: tuple[str, ...]


def forecast(prepared: Prepared, devices: Sequence[Device]) -> Forecast:
    """What the servers take on `devices`; without a row where nothing can be told, and a warning that says why.

    Raises CheckpointError where a model cannot be split as the recipe says.
    """
    if not isinstance(prepared.engine, Sized):
        return Forecast((), ())
    baseline = _baseline(prepared)
    if baseline is None:
        return Forecast((), ("memory can be told once the baseline is unpacked: run the recipe, or look again then",))
    found = models(prepared, baseline)
    if is_split(prepared):
        check_split(prepared, found)
    made = ledgers(prepared, found, devices[0] if devices else None)
    placed = place(devices, [ledger.need(_label(prepared, server)) for server, ledger in made.items()])
    rows = tuple(
        Row(label, ledger, _place(placed, label, devices), found[server[0]].is_estimate)
        for server, ledger in made.items()
        for label in [_label(prepared, server)]
    )
    return Forecast(rows, tuple(_warnings(prepared, rows, devices)))


def _baseline(prepared: Prepared) -> Checkpoint | None:
    model = prepared.loaded.recipe.model
    if isinstance(model, GgufSource):
        return prepared.shelf.find(BASELINE, baseline_key(prepared))
    return obtain_model(model, BASELINE)


def _label(prepared: Prepared, server: Server) -> str:
    name, load = server
    return name if load == prepared.loaded.recipe.engine.concurrency else f"{name} at {load} requests"


def _place(placed: Placement, label: str, devices: Sequence[Device]) -> str:
    if label in placed.berths:
        return "GPU " + ", ".join(map(str, placed.berths[label].devices))
    if not devices:
        return ""
    return "after others" if label in placed.waiting else "nowhere"


def _warnings(prepared: Prepared, rows: Sequence[Row], devices: Sequence[Device]) -> Iterator[str]:
    if not devices:
        yield "no GPU answers here: where servers go cannot be told (--gpu-memory 80GiB plans for another machine)"
        return
    for row in rows:
        yield from (f"{row.name}: {note}" for note in row.ledger.notes)
        yield from _too_large(row, devices)
    width = prepared.loaded.recipe.engine.parallel
    if width != "auto" and width > 1:
        yield from _crowded(rows, devices[0], width)


def _too_large(row: Row, devices: Sequence[Device]) -> Iterator[str]:
    need = row.ledger.need(row.name)
    alone = fitted(devices, need)
    gpus = "GPU" if need.num_devices == 1 else f"each of {need.num_devices} GPUs"
    if alone is None:
        least = (need.fixed_bytes + need.least_kv_bytes) / GIB
        yield f"{row.name} does not fit: it needs {least:.1f} GiB of a {gpus} at least, {_free(devices)}; {SPLIT}, or {FEWER}"
    elif alone != need:
        yield (
            f"{row.name} fits with {alone.kv_bytes / GIB:.1f} of the {need.kv_bytes / GIB:.1f} GiB of KV cache that its "
            f"load can fill: requests may be preempted, which changes what is measured; {FEWER}"
        )


def _crowded(rows: Sequence[Row], device: Device, width: int) -> Iterator[str]:
    """Servers that a fixed number puts on one GPU together, as far as the recipe does not pin them elsewhere."""
    needs: list[Need] = sorted(
        (row.ledger.need(row.name) for row in rows if not row.ledger.only), key=lambda need: -need.total_bytes
    )
    together = sum(need.total_bytes for need in needs[:width])
    if together > device.usable_bytes:
        yield (
            f"engine.parallel {width}: the {width} largest servers take {together / GIB:.1f} GiB, {_free([device])}; "
            "`parallel: auto` lets qgate place them"
        )


def _free(devices: Sequence[Device]) -> str:
    return f"{max(device.usable_bytes for device in devices) / GIB:.1f} GiB are free to use"
