"""Run in vLLM's environment: which mixed-precision kernel vLLM itself chooses, on GPUs that are only pretended.

    python vllm_kernels.py request.json result.json

request.json: a list of {rows, columns, bits, symmetric, group_size, half, capability}; result.json: a kernel or null each.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from vllm import platforms
from vllm.model_executor.kernels import linear
from vllm.platforms.interface import DeviceCapability, PlatformEnum
from vllm.scalar_type import scalar_types

SYMMETRIC = {4: scalar_types.uint4b8, 8: scalar_types.uint8b128}
ASYMMETRIC = {4: scalar_types.uint4, 8: scalar_types.uint8}


def pretend(capability: int) -> None:
    """Every module of vLLM sees an NVIDIA GPU of this capability."""
    major, minor = divmod(capability, 10)
    real = DeviceCapability(major, minor)
    gpu = SimpleNamespace(
        _enum=PlatformEnum.CUDA, is_cuda=lambda: True, is_cuda_alike=lambda: True, is_rocm=lambda: False,
        is_cpu=lambda: False, is_xpu=lambda: False, get_device_capability=lambda *_: real,
        is_device_capability=lambda wanted, *_: wanted == capability,
        has_device_capability=lambda wanted, *_: capability >= wanted,
    )  # fmt: skip
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("vllm") and "current_platform" in vars(module):
            module.current_platform = gpu
    platforms.current_platform = gpu


def chosen(case: dict[str, object]) -> str | None:
    """vLLM's kernel; None where it raises that there is none."""
    pretend(case["capability"])
    config = linear.MPLinearLayerConfig(
        full_weight_shape=(case["columns"], case["rows"]),
        partition_weight_shape=(case["columns"], case["rows"]),
        weight_type=(SYMMETRIC if case["symmetric"] else ASYMMETRIC)[case["bits"]],
        act_type=torch.float16 if case["half"] else torch.bfloat16,
        group_size=case["group_size"] or -1,
        zero_points=not case["symmetric"],
    )
    try:
        return linear.choose_mp_linear_kernel(config, case["capability"]).__name__
    except ValueError:
        return None


if __name__ == "__main__":
    cases = json.loads(Path(sys.argv[1]).read_text())
    Path(sys.argv[2]).write_text(json.dumps([chosen(case) for case in cases]))
