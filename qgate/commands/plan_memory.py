"""A forecast of every server's memory in, a table and warnings on the console out; and GPU sizes as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qgate.errors import UserError
from qgate.rooms.forecast import Forecast, Row
from qgate.sizing.ledger import GIB
from qgate.sizing.placement import Device

UNITS = {"gib": 1 << 30, "mib": 1 << 20, "gb": 10**9, "mb": 10**6, "g": 1 << 30, "": 1 << 30}


def devices_like(size: str | None, count: int | None) -> tuple[Device, ...]:
    """So many empty GPUs (one) of this size (`80GiB`; a bare number is GiB), none without a size. Raises UserError."""
    if size is None:
        if count is not None:
            raise UserError("--gpus would change nothing", advice="say how large they are too: --gpu-memory 80GiB")
        return ()
    count = 1 if count is None else count
    said = re.fullmatch(r"([\d.]+)\s*([a-z]*)", size.strip().lower())
    if said is None or said[2] not in UNITS or said[1].count(".") > 1 or count < 1 or not float(said[1]):
        raise UserError(f"--gpu-memory {size} is no size of a GPU", advice="write it as 80GiB, and --gpus as 1 or more")
    total = int(float(said[1]) * UNITS[said[2]])
    return tuple(Device(index, "a GPU of that size", total, total) for index in range(count))


def show(console: Console, found: Forecast, devices: Sequence[Device]) -> None:
    """Print the ledger and the places, and what does not fit."""
    if found.rows:
        console.print()
        console.print(_table(found.rows))
    for device in devices if found.rows else ():
        console.print(
            f"[dim]GPU {device.index}: {escape(device.name)}, {device.free_bytes / GIB:.1f} of "
            f"{device.total_bytes / GIB:.1f} GiB free[/]",
            highlight=False,
        )
    if any(row.is_estimate for row in found.rows):
        console.print("[dim]~ is told from the baseline and the quantizer's options[/]", highlight=False)
    for warning in found.warnings:
        console.print(f"[yellow]•[/] {escape(warning)}", highlight=False)


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("GiB a GPU")
    for column in ("weights", "KV", "step", "scoring", "graphs", "base", "total"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("where", no_wrap=True)
    for row in rows:
        made = row.ledger
        parts = (made.weights, made.kv_cache, made.activations, made.scoring, made.graphs, made.context, made.total)
        style = "red" if row.place == "nowhere" else "yellow" if row.place == "after others" else "green"
        sizes = [f"{size / GIB:.2f}" for size in parts]
        sizes[0] = f"{'~' if row.is_estimate else ''}{sizes[0]}"
        table.add_row(escape(row.name), *sizes, f"[{style}]{row.place}[/]")
    return table
