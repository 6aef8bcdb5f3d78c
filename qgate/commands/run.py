"""`qgate run`: a recipe in, the verdict on standard output, reports in the run's folder."""

from __future__ import annotations

import argparse

from rich.console import Console

from qgate import pipeline
from qgate.commands.progress import watching
from qgate.errors import ExitCode
from qgate.io import recipe
from qgate.reports import terminal


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run a recipe. Raises QgateError."""
    loaded = recipe.load(arguments.recipe)
    with watching(quiet=arguments.quiet) as watcher:
        outcome = pipeline.run(loaded, arguments.results, watcher)
    Console().print(terminal.render(outcome.run, outcome.sheet))
    return outcome.sheet.exit_code
