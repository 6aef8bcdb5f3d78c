"""`qgate env build|list|remove`: the locked environments of the heavy tools. Writes below $QGATE_HOME."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from qgate.commands.progress import watching
from qgate.errors import ExitCode
from qgate.io import env_build, envs
from qgate.wording import counted

STATES = {"built": "[green]built[/]", "missing": "[dim]not built[/]", "changed": "[red]changed[/]"}


def build(arguments: argparse.Namespace) -> ExitCode:
    """Build each of `names` that is not built (`again`: in any case). Raises EnvError."""
    console = Console()
    for name in arguments.names:
        with watching(quiet=arguments.quiet) as watcher:
            tool = env_build.build(name, watcher, again=arguments.again)
        console.print(f"{name}: {tool.python}", highlight=False, soft_wrap=True)
    return ExitCode.PASS


def show(arguments: argparse.Namespace) -> ExitCode:
    """Print every lock with the state of its environment."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "state", "packages", "disk", "what"):
        table.add_column(column, overflow="fold")
    for state in envs.states():
        what = state.description + (f"\n[dim]{escape(state.summary)}[/]" if state.state == "changed" else "")
        size = f"{state.size_bytes / 1e9:.1f} GB" if state.size_bytes else ""
        table.add_row(state.name, STATES[state.state], str(state.num_packages), size, what)
    console = Console()
    console.print(table)
    console.print(f"\n[dim]in {envs.root()}; build one with: qgate env build NAME[/]", highlight=False, soft_wrap=True)
    return ExitCode.PASS


def remove(arguments: argparse.Namespace) -> ExitCode:
    """Remove every environment built under each of `names`, older locks' included."""
    for name in arguments.names:
        num = env_build.remove(name)
        Console().print(f"{name}: {counted(num, 'environment')} removed", highlight=False)
    return ExitCode.PASS
