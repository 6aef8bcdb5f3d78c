"""Worker: adds seeded noise to a checkpoint's linear weights. Runs in a tool's own environment; imports nothing of qgate.

In: request.json {model, output, level, seed, ignore}. Every two-dimensional `*.weight` that is no embedding and not in
`ignore` (names or `re:` patterns) becomes W + level · s · N: s is the standard deviation of the weight's own row (one
output channel), N standard normal noise that is drawn from the seed and the tensor's name alone. So two levels with one
seed are the same damage, more or less of it, and a sharded checkpoint gets the noise that an unsharded one gets.
Out: the directory `output`, all other files as they are, and result.json {packages, wall_s, peak_memory_bytes, notes}; on
a known failure result.json {error, advice} and a non-zero exit.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from worker_frame import Refusal, main

PACKAGES = ("torch", "safetensors", "numpy")
EMBEDDINGS = re.compile(r"(^|\.)(embed\w*|wte|wpe|\w*_embeddings?)$")
FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32})


def damage(request: dict[str, Any]) -> dict[str, Any]:
    """Write the damaged copy. Raises Refusal."""
    source, output, num_damaged = Path(request["model"]), Path(request["output"]), 0
    for file in sorted(source.iterdir()):
        if file.suffix == ".safetensors":
            num_damaged += damage_file(file, output / file.name, request)
        elif file.is_file():
            shutil.copyfile(file, output / file.name)
    if num_damaged == 0:
        raise Refusal(f"{source} has no linear weight to damage", "ignore fewer layers, or name an unquantized model")
    return {"notes": [f"noise of {request['level']:g} standard deviations in {num_damaged} weights"]}


def damage_file(source: Path, target: Path, request: dict[str, Any]) -> int:
    """One shard. Raises Refusal where a weight overflows its dtype."""
    made: dict[str, torch.Tensor] = {}
    num_damaged = 0
    with safe_open(source, framework="pt") as stored:
        metadata = stored.metadata() or {"format": "pt"}
        for name in stored.keys():  # noqa: SIM118 (not a dict)
            made[name] = stored.get_tensor(name)
            if is_linear(name, made[name], request["ignore"]):
                made[name] = noisy(made[name], request["level"], stream(request["seed"], name))
                num_damaged += 1
                if not torch.isfinite(made[name]).all():
                    raise Refusal(f"{name} overflows {made[name].dtype} with so much noise", "choose a lower level")
    save_file(made, target, metadata=metadata)
    return num_damaged


def is_linear(name: str, tensor: torch.Tensor, ignore: Sequence[str]) -> bool:
    """Whether a tensor is the weight of a linear layer that is not ignored."""
    module = name.removesuffix(".weight")
    if module == name or tensor.ndim != 2 or tensor.dtype not in FLOATS or EMBEDDINGS.search(module):
        return False
    return not any(re.match(entry[3:], module) if entry.startswith("re:") else entry == module for entry in ignore)


def stream(seed: int, name: str) -> np.random.Generator:
    """The noise of one tensor."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def noisy(weight: torch.Tensor, level: float, generator: np.random.Generator) -> torch.Tensor:
    """float[out, in] + level · the row's standard deviation · noise, in the weight's own dtype."""
    exact = weight.float()
    noise = torch.from_numpy(generator.standard_normal(tuple(weight.shape), dtype=np.float32))
    return (exact + level * exact.std(dim=1, keepdim=True, unbiased=False) * noise).to(weight.dtype)


if __name__ == "__main__":
    sys.exit(main(sys.argv, damage, PACKAGES))
