"""The machine that a run ran on: platform, cores, memory, GPUs. Reads the machine; never its name or its paths."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import psutil

from qgate.io import proc

QUERY = "name,memory.total,driver_version"
FREE = "index,memory.free"


def describe() -> dict[str, Any]:
    """What a reader of the numbers wants to know of the machine."""
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cpu": cpu_name(),
        "num_cores": num_cores(),
        "memory_bytes": psutil.virtual_memory().total,
        "gpus": gpus(),
    }


def num_cores() -> int:
    """Logical CPU cores that this process may use, as far as the machine says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1


def cpu_name() -> str:
    """Model name of the CPU, as the kernel gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown CPU"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def free_gpu_memory() -> dict[int, int]:
    """Bytes free on each NVIDIA GPU by its index; empty where nvidia-smi does not answer."""
    listed = proc.output(["nvidia-smi", f"--query-gpu={FREE}", "--format=csv,noheader,nounits"]) or ""
    rows = [line.split(", ") for line in listed.strip().splitlines()]
    return {int(index): int(free) << 20 for index, free in rows if free.isdigit()}


def gpus() -> list[dict[str, str]]:
    """Name, memory and driver of each NVIDIA GPU; empty where nvidia-smi does not answer."""
    listed = proc.output(["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader"]) or ""
    rows = (line.split(", ") for line in listed.strip().splitlines())
    return [dict(zip(QUERY.split(","), row, strict=False)) for row in rows]
