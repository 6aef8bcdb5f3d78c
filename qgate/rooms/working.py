"""A tool's worker and its request in, its result out; a worker's failure becomes a QuantizeError. Runs a child process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from qgate.errors import QuantizeError, WorldError
from qgate.io import proc
from qgate.ports import Tool


def work_off(
    tool: Tool,
    worker: Path,
    request: Mapping[str, Any],
    *,
    work: Path,
    what: str,
    on_wait: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Run `worker` in the tool's environment; request, result and log lie in `work`, `on_wait` is called meanwhile.

    Raises QuantizeError, in the worker's own words where it has some.
    """
    try:
        return proc.run_worker(tool.python, worker, request, work=work, what=what, on_wait=on_wait)
    except WorldError as error:
        raise QuantizeError(error.message, advice=error.advice) from error
