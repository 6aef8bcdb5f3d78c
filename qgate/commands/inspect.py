"""`qgate inspect CHECKPOINT`: what is wrong with a checkpoint, before any server is started for it. Reads the disk."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from qgate.errors import ExitCode, UserError
from qgate.io import artefact
from qgate.reports import inspection as report
from qgate.rooms.inspect import inspect as look


def inspect(arguments: argparse.Namespace) -> ExitCode:
    """Print every finding; FAIL where one is an error. Raises CheckpointError where there is no checkpoint."""
    if arguments.tensor_parallel_size < 1:
        raise UserError(f"--tensor-parallel-size is {arguments.tensor_parallel_size}", advice="give 1 or more")
    found = look(
        arguments.checkpoint,
        arguments.baseline,
        tensor_parallel_size=arguments.tensor_parallel_size,
        weights=arguments.baseline is not None and not arguments.no_weights,
    )
    if arguments.json:
        sys.stdout.write(artefact.dumps(found))
    else:
        Console().print(report.render(found))
    return ExitCode.FAIL if found.errors else ExitCode.PASS
