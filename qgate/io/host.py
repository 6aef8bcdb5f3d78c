"""The machine that a run ran on: platform, cores, memory, GPUs. Reads the machine; never its name or its paths."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from qgate.io import proc

QUERY = "name,memory.total,driver_version"
FREE = "index,memory.free"
OWN_CGROUPS = Path("/proc/self/cgroup")
CGROUPS = Path("/sys/fs/cgroup")


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
    """Logical CPU cores that this process may use: its affinity, and no more than a container's limit, rounded up."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1
    return min([usable, *(max(1, math.ceil(limit)) for limit in _cpu_limits())])


def _cpu_limits() -> Iterator[float]:
    """CPU limits, in cores, of this process's cgroup and of all that hold it.

    Version 2 has them in cpu.max, version 1 in cpu.cfs_quota_us and cpu.cfs_period_us (cgroup-v2.rst and sched-bwc.rst of the
    kernel). A container may be told its path on the host: then what is mounted at the root is the container's own.
    """
    for line in _read(OWN_CGROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in {"", "cpu", "cpu,cpuacct"}:  # version 2 names none
            continue
        root = CGROUPS / controllers
        own = root / path.lstrip("/")
        for folder in (own, *own.parents):
            quota, _, period = _quota_and_period(folder).partition(" ")
            if folder.is_relative_to(root) and quota.isdigit() and period.isdigit():
                yield int(quota) / int(period)


def _quota_and_period(folder: Path) -> str:
    old = f"{_read(folder / 'cpu.cfs_quota_us')} {_read(folder / 'cpu.cfs_period_us')}"
    return _read(folder / "cpu.max") or old


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


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
