"""`qgate compare`: two runs in, what got worse from one to the other out."""

from __future__ import annotations

import argparse

from rich.console import Console

from qgate.commands.show import find_run
from qgate.errors import ExitCode
from qgate.reports import releases
from qgate.rooms.releases import compare_releases


def compare(arguments: argparse.Namespace) -> ExitCode:
    """Print every change; exit 1 where something got worse for sure. Raises UserError, ArtefactError."""
    folders = [find_run(name, arguments.results / "runs") for name in (arguments.earlier, arguments.later)]
    found = compare_releases(*folders)
    Console().print(releases.render((found.earlier.run_id, found.later.run_id), found.changes, found.notes))
    return found.exit_code
