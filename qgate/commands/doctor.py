"""`qgate doctor`: what this machine can do, with advice. Reads the machine; changes nothing."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from qgate import __version__
from qgate.errors import EvalsetError, ExitCode, QgateError
from qgate.io import envs, evalsets, proc
from qgate.io.files import room
from qgate.ports import load_engine, load_quantizer
from qgate.wording import counted

ENOUGH_DISK_BYTES = 20 << 30


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, whether it is well, and the fix where it is not."""

    subject: str
    level: str
    """ok, note or problem; only a problem keeps qgate from working at all."""
    said: str
    advice: str = ""


def doctor(arguments: argparse.Namespace) -> ExitCode:
    """Print every finding; exit 3 when there is a problem."""
    findings = [*_machine(arguments.results), *_gpus(), *_environments(), *_plugins(), *_evalsets()]
    table = Table(box=None, show_header=False, pad_edge=False)
    marks = {"ok": "[green]✓[/]", "note": "[yellow]•[/]", "problem": "[red]✗[/]"}
    for finding in findings:
        advice = f"\n[dim]{finding.advice}[/]" if finding.advice else ""
        table.add_row(marks[finding.level], finding.subject, finding.said + advice)
    Console().print(table)
    return ExitCode.INCONCLUSIVE if any(f.level == "problem" for f in findings) else ExitCode.PASS


def _machine(results: Path) -> Iterator[Finding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding("qgate", "ok", f"{__version__} on Python {version}, {platform.system()} {platform.machine()}")
    memory = psutil.virtual_memory()
    yield Finding(
        "machine", "ok", f"{psutil.cpu_count()} cores, {memory.available >> 30} of {memory.total >> 30} GiB free"
    )
    folder, free = room(results)
    few = free < ENOUGH_DISK_BYTES
    advice = "a 7B model with three variants needs about 30 GB; pass --results on a larger disk" if few else ""
    yield Finding("disk", "note" if few else "ok", f"{free >> 30} GiB free at {folder}", advice)


def _gpus() -> Iterator[Finding]:
    query = "--query-gpu=name,memory.total,memory.free,driver_version"
    listed = proc.output(["nvidia-smi", query, "--format=csv,noheader"])
    if listed is None:
        advice = "the transformers engine works without; a tier that accepts only vllm needs one"
        yield Finding("GPU", "note", "none found (nvidia-smi does not answer)", advice)
        return
    for line in listed.strip().splitlines():
        name, total, free, driver = (part.strip() for part in line.split(","))
        yield Finding("GPU", "ok", f"{name}, {free} of {total} free, driver {driver}")


def _environments() -> Iterator[Finding]:
    for state in envs.states():
        level = "ok" if state.state == "built" else "note"
        advice = "" if state.state == "built" else f"qgate env build {state.name}"
        yield Finding(f"env {state.name}", level, state.summary, advice)


def _plugins() -> Iterator[Finding]:
    for group, load in (("engines", load_engine), ("quantizers", load_quantizer)):
        good, bad = [], []
        for point in entry_points(group=f"qgate.{group}"):
            try:
                load(point.name)
                good.append(point.name)
            except QgateError as error:
                bad.append(Finding(group, "problem", error.message, error.advice or ""))
        yield Finding(group, "ok", ", ".join(sorted(good)))
        yield from bad


def _evalsets() -> Iterator[Finding]:
    for manifest in evalsets.available():
        name = manifest.full_name
        try:
            evalsets.verify(evalsets.shipped_root() / manifest.name)
        except EvalsetError as error:
            yield Finding(name, "problem", error.message, error.advice or "")
        else:
            yield Finding(name, "ok", f"{counted(manifest.num_items, 'item')}, every byte as locked")
