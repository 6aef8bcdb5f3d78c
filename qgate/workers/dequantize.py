"""A compressed-tensors checkpoint in, the same weights as plain ones out. Run in the environment `llmcompressor`.

    python dequantize.py request.json result.json

request.json: checkpoint, output (an empty folder), dtype. result.json: num_layers, notes, packages. Rounding of
activations is a property of the quantized layers, so it is gone in the result: what is left is what the weights say.
"""

from __future__ import annotations

import json
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from compressed_tensors.compressors.base import decompress_module
from compressed_tensors.quantization import QuantizationStatus
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

SCALES = (
    "weight_scale", "weight_zero_point", "weight_g_idx", "weight_global_scale", "weight_shape", "weight_packed",
    "input_scale", "input_zero_point", "input_global_scale", "output_scale", "output_zero_point",
)  # fmt: skip
WEIGHTS = (".safetensors", ".bin", ".safetensors.index.json")


def main(request_file: Path, result_file: Path) -> None:
    """Dequantize and write the result."""
    request = json.loads(request_file.read_text(encoding="utf-8"))
    checkpoint, output = Path(request["checkpoint"]), Path(request["output"])
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    method = (config.get("quantization_config") or {}).get("quant_method")
    if method != "compressed-tensors":
        said = f"the checkpoint is quantized by {method!r}; only compressed-tensors can be dequantized"
        result_file.write_text(json.dumps({"error": said}), encoding="utf-8")
        sys.exit(said)
    dtype = getattr(torch, request["dtype"])
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=dtype)
    rounded, num_layers = _decompress(model)
    save_file(
        _plain(model, dtype, tied=bool(config.get("tie_word_embeddings"))),
        output / "model.safetensors",
        {"format": "pt"},
    )
    _copy_small_files(checkpoint, output)
    config.pop("quantization_config", None)
    config.pop("compression_config", None)
    config["dtype" if "dtype" in config else "torch_dtype"] = request["dtype"]
    (output / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    notes = ["activations are no longer rounded"] if rounded else []
    packages = {name: version(name) for name in ("torch", "transformers", "compressed-tensors")}
    result = {"num_layers": num_layers, "notes": notes, "packages": packages}
    result_file.write_text(json.dumps(result), encoding="utf-8")


def _decompress(model: torch.nn.Module) -> tuple[bool, int]:
    """Make every quantized layer's weight plain, in place. Whether activations were rounded, and how many layers."""
    rounded, num = False, 0
    for layer in model.modules():
        scheme = getattr(layer, "quantization_scheme", None)
        if scheme is None:
            continue
        if layer.quantization_status == QuantizationStatus.COMPRESSED:
            decompress_module(layer)
        rounded = rounded or scheme.input_activations is not None
        num += 1
    return rounded, num


def _plain(model: torch.nn.Module, dtype: torch.dtype, *, tied: bool) -> dict[str, torch.Tensor]:
    """The state without scales, floating tensors in `dtype`, a tied output embedding left out."""
    found: dict[str, Any] = {}
    for name, tensor in model.state_dict().items():
        if name.rsplit(".", 1)[-1] in SCALES or (tied and name.endswith("lm_head.weight")):
            continue
        found[name] = (
            tensor.to(dtype).contiguous().clone() if tensor.is_floating_point() else tensor.contiguous().clone()
        )
    return found


def _copy_small_files(checkpoint: Path, output: Path) -> None:
    for path in checkpoint.iterdir():
        if path.is_file() and not path.name.endswith(WEIGHTS) and path.name != "config.json":
            shutil.copyfile(path, output / path.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
