"""Run in a tool's environment: the weights that transformers_packed unpacks, and how near they are to the baseline's.

python packed_check.py request.json result.json
"""

import hashlib
import json
import sys
from pathlib import Path

import torch

REQUEST = json.loads(Path(sys.argv[1]).read_text())
sys.path.insert(0, REQUEST["workers"])

import transformers_load  # noqa: E402
import transformers_packed  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

torch.set_grad_enabled(False)
torch.set_num_threads(1)


def unpacked(folder: Path, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """The weights of the modules that are stored packed."""
    config = json.loads((folder / "config.json").read_text())
    state, modules = transformers_packed.dense_state(folder, config["quantization_config"], dtype)
    return {module: state[f"{module}.weight"] for module in modules}


def hashes(folder: Path, dtype: torch.dtype) -> dict[str, dict[str, object]]:
    """As the fixtures' dequantized.json, which make.py there writes."""
    return {
        module: {
            "shape": list(weight.shape),
            "sha256": hashlib.sha256(weight.to(torch.float16).numpy().tobytes()).hexdigest(),
        }
        for module, weight in unpacked(folder, dtype).items()
    }


def error(folder: Path, baseline: dict[str, torch.Tensor]) -> float:
    """The largest relative Frobenius error of a module."""
    weights = unpacked(folder, torch.float32).items()
    return max(float((w - baseline[f"{m}.weight"]).norm() / baseline[f"{m}.weight"].norm()) for m, w in weights)


def refusal(folder: Path, scratch: Path, **changes: object) -> str:
    """What loading says of a copy whose quantization_config or tensors were changed."""
    scratch.mkdir()
    for file in folder.iterdir():
        (scratch / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"].update(changes.get("config", {}))
    (scratch / "config.json").write_text(json.dumps(config))
    state = load_file(scratch / "model.safetensors")
    for name in changes.get("drop", ()):
        del state[name]
    state |= {name: torch.ones(64, dtype=torch.float16) for name in changes.get("add", ())}
    save_file(state, scratch / "model.safetensors")
    try:
        transformers_load.load(scratch, dtype="float32", device="cpu")
    except ValueError as problem:
        return str(problem)
    return ""


def main() -> dict[str, object]:
    """Every fixture, and the refusals."""
    root, scratch = Path(REQUEST["checkpoints"]), Path(REQUEST["scratch"])
    folders = [root / name for name in REQUEST["formats"]]
    baseline = {name: tensor.float() for name, tensor in load_file(root / "baseline" / "model.safetensors").items()}
    loaded = {folder.name: transformers_load.load(folder, dtype="float32", device="cpu") for folder in folders}
    gptq, awq, module = root / "gptq-v1", root / "awq-gemm", "model.layers.0.mlp.down_proj"
    return {
        "half": {folder.name: hashes(folder, torch.float16) for folder in folders},
        "full": {folder.name: hashes(folder, torch.float32) for folder in folders},
        "errors": {folder.name: error(folder, baseline) for folder in folders},
        "kernels": {name: found.kernels["linear"] for name, found in loaded.items()},
        "notes": {name: found.notes for name, found in loaded.items()},
        "refusals": {
            "version": refusal(awq, scratch / "version", config={"version": "gemv"}),
            "marlin": refusal(gptq, scratch / "marlin", config={"checkpoint_format": "marlin"}),
            "part": refusal(gptq, scratch / "part", drop=[f"{module}.scales"]),
            "norm": refusal(gptq, scratch / "norm", drop=["model.norm.weight"]),
            "bias": refusal(gptq, scratch / "bias", add=[f"{module}.bias"]),
        },
    }


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(main()))
