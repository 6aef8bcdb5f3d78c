"""What comes with qgate as data (sets, recipes, locks): its name in, its folder out. Looks at the disk, reads nothing."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def shipped_folder(name: str) -> Path:
    """The folder `name` (evalsets, recipes) of an installed wheel, or else of the checkout."""
    installed = PACKAGE / "_data" / name
    return installed if installed.is_dir() else PACKAGE.parent / name
