"""What the workers that do one thing share: a request in, a result or a refusal out. Part of each of them.

In: request.json. Out: result.json, what the work gave beside {packages, wall_s, peak_memory_bytes}; or {error, advice}
and a non-zero exit for a failure that is known. Needs nothing but Python.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any


class Refusal(Exception):
    """The request cannot be carried out. Carries the fix."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


def main(argv: Sequence[str], work: Callable[[dict[str, Any]], dict[str, Any]], packages: Sequence[str]) -> int:
    """Do what the request file argv[1] asks and say in argv[2] how it went. Returns the exit code.

    `work` gives the fields of the result, or raises Refusal; `packages` are those whose versions decide it.
    """
    started = time.monotonic()
    request, result = json.loads(Path(argv[1]).read_text(encoding="utf-8")), Path(argv[2]).absolute()
    try:
        given = work(request)
    except Refusal as refusal:
        result.write_text(json.dumps({"error": str(refusal), "advice": refusal.advice}), encoding="utf-8")
        return 1
    said = {
        "packages": {name: version(name) for name in packages},
        "wall_s": time.monotonic() - started,
        "peak_memory_bytes": resident_peak_bytes(),
        **given,
    }
    result.write_text(json.dumps(said, default=str), encoding="utf-8")
    return 0


def resident_peak_bytes() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
