"""Whether a process is still there, asked without a race: it may end between two questions. And waiting, patiently."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

PATIENCE_S = 120.0
"""No machine is so loaded that what a test waits for takes longer."""


def wait_for(condition: Callable[[], object]) -> None:
    """Return once the condition holds; fails where it does not for very long."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_alive(process: psutil.Process | int) -> bool:
    """Whether the process (or the one with this id) runs; a zombie does not."""
    try:
        found = psutil.Process(process) if isinstance(process, int) else process
        return found.is_running() and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
