"""Whether a process is still there, asked without a race: it may end between two questions."""

from __future__ import annotations

import psutil


def is_alive(process: psutil.Process | int) -> bool:
    """Whether the process (or the one with this id) runs; a zombie does not."""
    try:
        found = psutil.Process(process) if isinstance(process, int) else process
        return found.is_running() and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
