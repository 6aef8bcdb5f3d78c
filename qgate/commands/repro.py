"""`qgate repro`: an incident in, its cause on standard output, and a folder to pass on."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from qgate import repro as order
from qgate.commands.progress import watching
from qgate.errors import ExitCode, UserError
from qgate.io import evalset_add, incident
from qgate.io.incident import LoadedIncident
from qgate.io.store import Store
from qgate.reports import repro_script, repro_terminal
from qgate.schemas.repro import Repro
from qgate.wording import counted

UNSETTLED = frozenset({"not_reproduced", "undetermined"})


def repro(arguments: argparse.Namespace) -> ExitCode:
    """Find the cause of an incident. Exit 0 where one is named, 3 where none is. Raises QgateError."""
    if arguments.rate is not None and not 0 < arguments.rate <= 1:
        raise UserError(f"--rate {arguments.rate:g} is no failure rate", advice="write 10 % as 0.1")
    if arguments.calls is not None and arguments.calls < 0:
        raise UserError(
            f"--calls {arguments.calls} is no number of calls", advice="0 leaves the request as it was filed"
        )
    loaded = incident.load(arguments.incident)
    folder: Path = arguments.out or _folder(loaded, arguments.results)
    wishes = order.Wishes(rate=arguments.rate, calls=arguments.calls, every=arguments.every)
    with watching(quiet=arguments.quiet) as watcher:
        outcome = order.run(loaded, folder, Store(arguments.results, watcher.note), watcher, wishes)
    console = Console()
    console.print(repro_terminal.render(outcome.report, str(outcome.folder)))
    if arguments.add_to is not None:
        console.print(_add(outcome.report, arguments.add_to), soft_wrap=True, highlight=False)
    return ExitCode.INCONCLUSIVE if outcome.report.attribution.cause in UNSETTLED else ExitCode.PASS


def _folder(loaded: LoadedIncident, results: Path) -> Path:
    """One folder per incident: the same file again goes on where it stopped."""
    return results / "repro" / f"{loaded.path.stem}-{loaded.sha256[:8]}"


def _add(report: Repro, folder: Path) -> str:
    """Puts the request that the scripts send into the set."""
    added = evalset_add.add(folder, report, repro_script.request_of(report))
    what = f"with {added.item}" if added.is_new else f"which had {added.item} already"
    items = counted(added.manifest.num_items, "item")
    return f"{added.manifest.full_name}: {items}, {what}; name it in a recipe by {folder}"
