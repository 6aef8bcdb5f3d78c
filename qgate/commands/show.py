"""`qgate show`: a finished run's verdict again, from its stored files."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from qgate.errors import ExitCode, UserError
from qgate.io import artefact
from qgate.reports import terminal
from qgate.schemas.run import Run
from qgate.schemas.verdict import VerdictSheet


def show(arguments: argparse.Namespace) -> ExitCode:
    """Print the verdict of a run; the exit code is the one that the run had. Raises UserError, ArtefactError."""
    folder = find_run(arguments.run, arguments.results / "runs")
    sheet = artefact.load(folder / "verdict.json", VerdictSheet)
    Console().print(terminal.render(artefact.load(folder / "run.json", Run), sheet, str(folder)))
    return sheet.exit_code


def find_run(name: str | None, runs: Path) -> Path:
    """The folder of a run: by path, by id, or the latest. Raises UserError."""
    if name is not None:
        for folder in (Path(name), runs / name):
            if (folder / "verdict.json").is_file():
                return folder
        raise UserError(f"no finished run {name!r}", advice=_advice(runs))
    finished = sorted(runs.glob("*/verdict.json"), key=lambda path: path.stat().st_mtime)
    if not finished:
        raise UserError(f"no finished run under {runs}", advice="qgate run recipe.yaml")
    return finished[-1].parent


def _advice(runs: Path) -> str:
    known = sorted(path.parent.name for path in runs.glob("*/verdict.json"))
    return f"finished runs: {', '.join(known[-5:])}" if known else f"there is none under {runs}"
