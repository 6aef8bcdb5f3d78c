"""`qgate run`: a recipe in, the verdict on standard output, reports in the run's folder."""

from __future__ import annotations

import argparse
import os

from rich.console import Console

from qgate import pipeline
from qgate.commands import github
from qgate.commands.progress import watching
from qgate.errors import ExitCode
from qgate.io import recipe
from qgate.reports import terminal


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run a recipe. Raises QgateError."""
    loaded = recipe.load(arguments.recipe)
    with watching(quiet=arguments.quiet) as watcher:
        outcome = pipeline.run(loaded, arguments.results, watcher)
    with github.quoting(os.environ):
        Console().print(terminal.render(outcome.run, outcome.sheet, str(outcome.folder)))
    github.tell(outcome, os.environ)
    if outcome.sheet.exit_code is ExitCode.INCONCLUSIVE and arguments.fail_on == "fail":
        Console().print("exit code 0 all the same: --fail-on fail lets what is not settled pass")
        return ExitCode.PASS
    return outcome.sheet.exit_code
