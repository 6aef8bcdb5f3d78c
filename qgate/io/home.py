"""Where qgate keeps what is made once per machine (environments, hashes). Names a folder, makes none."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def home() -> Path:
    """$QGATE_HOME, else the user's cache folder for `qgate`."""
    chosen = os.environ.get("QGATE_HOME")
    return Path(chosen).expanduser().absolute() if chosen else platformdirs.user_cache_path("qgate")
