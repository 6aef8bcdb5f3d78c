"""A variant that is still to be made in, nothing or the reason why it cannot be made out. Reads the disk; fast.

Everything here is known from config.json, the safetensors headers and the listing of the tool's environment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from qgate.errors import CheckpointError, StoreError
from qgate.io import checkpoint, envs, tensors
from qgate.io import precision as precisions
from qgate.io.files import room
from qgate.io.tensors import Tensor
from qgate.ports import Quantizer, Tool
from qgate.rooms import calibration
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.variant import Calibration
from qgate.sizing.model import Packed, packed

GROUP_SIZES = (16, 32, 64, 128, 256)
"""Group sizes that kernels have; only those that fit are proposed."""
EMBEDDINGS = re.compile(r"(^|\.)(embed\w*|wte|wpe|\w*_embeddings?)$")
AUTO_MAPPINGS = Path("transformers") / "models" / "auto" / "modeling_auto.py"


@dataclass(frozen=True)
class VariantJob:
    """One variant to be made by a quantizer."""

    name: str
    quantizer: Quantizer
    options: BaseModel
    calibration: Calibration | None
    baseline: Checkpoint
    dtype: str
    """Of the baseline's weights: float16 or bfloat16."""
    tool: Tool


def precheck(job: VariantJob, results: Path) -> None:
    """Refuse what cannot work before any work. `results`: the folder that the checkpoint will be written in.

    Raises CheckpointError (architecture, group size, calibration, quantized already) and StoreError (no room).
    """
    config = checkpoint.read_config(job.baseline.path)
    stored = tensors.read(job.baseline.path)
    if precisions.quantization(config) is not None:
        raise CheckpointError(
            f"variant {job.name}: the model is quantized already ({job.baseline.precision})",
            advice="name the model's unquantized checkpoint as `model`, and this one as a variant's `checkpoint`",
        )
    _check_architecture(job, config["architectures"][0])
    layers = quantized_layers(stored, job.quantizer.ignored(job.options))
    if not layers:
        raise CheckpointError(f"variant {job.name}: `ignore` leaves no layer to quantize", advice="ignore fewer layers")
    _check_group_size(job, layers)
    if job.quantizer.needs_calibration(job.options):
        _check_calibration(job)
    _check_room(job, layers, results)


def quantized_layers(stored: Mapping[str, Tensor], ignored: Iterable[str]) -> dict[str, Tensor]:
    """Module name to weight of every linear layer that is not ignored (by name or `re:` pattern, as the tools match)."""
    patterns = tuple(ignored)
    return {
        module: tensor
        for name, tensor in stored.items()
        if name.endswith(".weight") and len(tensor.shape) == 2
        for module in [name.removesuffix(".weight")]
        if not EMBEDDINGS.search(module) and not any(_matches(module, pattern) for pattern in patterns)
    }


def _matches(module: str, pattern: str) -> bool:
    if pattern.startswith("re:"):
        return re.match(pattern[3:], module) is not None
    return module == pattern


def _check_architecture(job: VariantJob, architecture: str) -> None:
    """Whether the environment's transformers has this causal language model, from the text of its table."""
    tables = [folder / AUTO_MAPPINGS for folder in envs.site_packages(job.tool) if (folder / AUTO_MAPPINGS).is_file()]
    if not tables:
        return  # a quantizer that does without transformers: the worker must say
    if f'"{architecture}"' not in tables[0].read_text(encoding="utf-8"):
        has = envs.packages(job.tool, ["transformers"]).get("transformers", "")
        raise CheckpointError(
            f"variant {job.name}: transformers {has} of the quantizer's environment has no {architecture}",
            advice="name an environment with a newer transformers (variant's `env`)",
        )


def _check_group_size(job: VariantJob, layers: Mapping[str, Tensor]) -> None:
    size = job.quantizer.group_size(job.options)
    if size is None:
        return
    misfits = {module: tensor.shape[1] for module, tensor in layers.items() if tensor.shape[1] % size}
    if not misfits:
        return
    module, columns = next(iter(misfits.items()))
    others = f" (and those of {len(misfits) - 1} other layers)" if len(misfits) > 1 else ""
    common = math.gcd(*(tensor.shape[1] for tensor in layers.values()))
    fitting = [str(candidate) for candidate in GROUP_SIZES if common % candidate == 0]
    ignore = "add the layers to `ignore`" if len(misfits) < len(layers) else "choose a scheme without groups (W8A8)"
    option = next((name for name in type(job.options).model_fields if name.endswith("group_size")), "group_size")
    raise CheckpointError(
        f"variant {job.name}: group size {size} does not divide the {columns} columns of {module}{others}",
        advice=f"set {option} to {' or '.join(fitting)}" if fitting else ignore,
    )


def _check_calibration(job: VariantJob) -> None:
    if job.calibration is None:
        raise CheckpointError(
            f"variant {job.name}: this algorithm needs calibration texts", advice="add `calibration: {file: ...}`"
        )
    if job.calibration.file is not None:
        calibration.check(job.calibration)


def packed_layers(job: VariantJob, layers: Mapping[str, Tensor]) -> dict[str, Packed]:
    """By the weight's name, what the quantizer will make of it; 8 bits wide where its precision names no width."""
    bits = precisions.weight_bits(job.quantizer.precision(job.options)) or 8
    group = job.quantizer.group_size(job.options)
    return {f"{module}.weight": packed(tensor.shape, bits, group) for module, tensor in layers.items()}


def result_bytes(job: VariantJob, layers: Mapping[str, Tensor]) -> int:
    """Size of the checkpoint to be made."""
    gone = sum(tensor.size_bytes for tensor in layers.values())
    return job.baseline.weight_bytes - gone + sum(each.size_bytes for each in packed_layers(job, layers).values())


def _check_room(job: VariantJob, layers: Mapping[str, Tensor], results: Path) -> None:
    needed, (place, free) = int(result_bytes(job, layers) * 1.1), room(results)
    if needed > free:
        raise StoreError(
            f"variant {job.name} takes about {needed / 1e9:.2f} GB; {place} has {free / 1e9:.2f} GB left",
            advice="free some space, or pass --results with a folder that has more",
        )
