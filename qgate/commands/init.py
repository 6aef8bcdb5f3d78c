"""`qgate init`: a commented starter recipe, to a file with calibration texts beside it, or to standard output."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files
from pathlib import Path

from qgate.errors import ExitCode, UserError
from qgate.io.files import write_bytes, write_text
from qgate.io.shipped import shipped_folder

CALIBRATION = "calibration.jsonl"
"""Name of the texts in the starter."""


def init(arguments: argparse.Namespace) -> ExitCode:
    """Write the starter; existing files are left alone. Raises UserError, StoreError."""
    text = files("qgate.commands").joinpath("starter.yaml").read_text(encoding="utf-8")
    if arguments.file is None:
        sys.stdout.write(text)
        return ExitCode.PASS
    if arguments.file.exists():
        raise UserError(
            f"{arguments.file} exists already", advice="choose another name; qgate does not overwrite recipes"
        )
    write_text(arguments.file, text)
    texts: Path = arguments.file.with_name(CALIBRATION)
    told = f"wrote {arguments.file}"
    if not texts.exists():
        write_bytes(texts, (shipped_folder("recipes") / "calibration" / "general.jsonl").read_bytes())
        told += f" and {texts}, general texts to calibrate on"
    sys.stderr.write(f"{told}; next: qgate plan {arguments.file}\n")
    return ExitCode.PASS
