"""`qgate init`: a commented starter recipe, to a file or to standard output."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files

from qgate.errors import ExitCode, UserError
from qgate.io.files import write_text


def init(arguments: argparse.Namespace) -> ExitCode:
    """Write the starter; an existing file is left alone. Raises UserError."""
    text = files("qgate.commands").joinpath("starter.yaml").read_text(encoding="utf-8")
    if arguments.file is None:
        sys.stdout.write(text)
        return ExitCode.PASS
    if arguments.file.exists():
        raise UserError(
            f"{arguments.file} exists already", advice="choose another name; qgate does not overwrite recipes"
        )
    write_text(arguments.file, text)
    sys.stderr.write(f"wrote {arguments.file}; next: qgate plan {arguments.file}\n")
    return ExitCode.PASS
