"""`qgate plan`: what a run would do, what is stored already, and sizes. Makes nothing."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qgate.commands import plan_memory
from qgate.commands.progress import watching
from qgate.crosscheck import evalset_name
from qgate.errors import EnvError, ExitCode
from qgate.io import envs, recipe
from qgate.judge.reach import out_of_reach
from qgate.ports import NO_TOOL, Sized, Tool
from qgate.rooms.forecast import forecast
from qgate.rooms.outlook import outlook
from qgate.rooms.prepare import Prepared, prepare
from qgate.rooms.variants import successions
from qgate.schemas.evalset import Item
from qgate.sizing.placement import Device

OTHER_COLUMNS = 40
"""Columns of the terminal that a step's kind, state and size take, so that each step is one line."""
LEAST_COLUMNS = 20


class Environments:
    """Looks environments up as a plan does: one that is not built is noted, and stands as no tool at all."""

    def __init__(self) -> None:
        self.missing: dict[str, EnvError] = {}

    def find(self, spec: str) -> Tool:
        """The tool, or NO_TOOL."""
        try:
            return envs.resolve(spec)
        except EnvError as error:
            self.missing[error.message] = error
            return NO_TOOL


def plan(arguments: argparse.Namespace) -> ExitCode:
    """Print every step with its state; INCONCLUSIVE where an environment is missing. Raises what a run would refuse."""
    loaded = recipe.load(arguments.recipe)
    wished = plan_memory.devices_like(arguments.gpu_memory, arguments.gpus)
    environments = Environments()
    with watching(quiet=True) as watcher:
        prepared = prepare(loaded, arguments.results, watcher, environments.find)
    lines = outlook(prepared)
    devices = wished or _devices(prepared)
    console = Console()
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    longest = max(len(line.label) for line in lines)
    table.add_column("step", no_wrap=True)
    table.add_column("what", overflow="fold", width=min(longest, max(LEAST_COLUMNS, console.width - OTHER_COLUMNS)))
    table.add_column("state", overflow="fold")
    table.add_column("size at most", overflow="fold")
    for line in lines:
        style = "green" if line.state in {"stored", "at hand"} else "yellow"
        table.add_row(
            line.kind, escape(line.label), f"[{style}]{escape(line.state)}[/]", f"[dim]{escape(line.size)}[/]"
        )
    console.print(table)
    waiting = sum(line.state not in {"stored", "at hand"} for line in lines)
    engine = loaded.recipe.engine
    together = "as many servers as fit" if engine.parallel == "auto" else f"{engine.parallel} servers"
    console.print(
        f"\n{len(lines)} steps, {waiting} to do; engine {engine.name} on {prepared.device}, "
        f"{'one server' if engine.parallel == 1 else together} at a time, {engine.concurrency} requests in flight each",
        highlight=False,
    )
    plan_memory.show(console, forecast(prepared, devices), devices)
    for succession in successions(loaded.recipe):
        console.print(f"[yellow]•[/] {escape(succession)}", highlight=False)
    for name, tier in loaded.recipe.tiers.items():
        if engine.name not in tier.engines:
            console.print(
                f"[yellow]•[/] tier {name} accepts numbers from {', '.join(tier.engines)} only: it will be INCONCLUSIVE",
                highlight=False,
            )
    for doubt in out_of_reach(
        loaded.recipe, _num_items(prepared), _num_items(prepared, lambda item: bool(item.reference))
    ):
        console.print(f"[yellow]•[/] {escape(doubt)}", highlight=False)
    for error in environments.missing.values():
        console.print(
            f"[yellow]•[/] {escape(error.message)}: {escape(error.advice or '')}; until then what was made with it counts "
            "as to do",
            highlight=False,
        )
    return ExitCode.INCONCLUSIVE if environments.missing else ExitCode.PASS


def _num_items(prepared: Prepared, counts: Callable[[Item], bool] = lambda item: True) -> dict[str, int | None]:
    """Items of each set that count, twins with their clean one; of a set that lm-eval is still to make, None."""
    known = {
        name: len({item.twin_of or item.id for item in evalset.items if counts(item)})
        for name, evalset in prepared.evalsets.items()
    }
    return {name: known.get(name) for use in prepared.loaded.recipe.evalsets for name in [evalset_name(use.name)]}


def _devices(prepared: Prepared) -> tuple[Device, ...]:
    """The GPUs of this machine, as the engine sees them."""
    return prepared.engine.devices(prepared.tool) if isinstance(prepared.engine, Sized) else ()
