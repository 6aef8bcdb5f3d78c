"""Makes the compressed-tensors checkpoints beside it from `baseline`, by llm-compressor itself. Run once, by hand.

    <python of the environment llmcompressor>  make_compressed_tensors.py

Each folder then holds a whole checkpoint and dequantized.json, as make.py describes it, here by compressed-tensors' own
decompression when transformers loads the checkpoint.
"""

import hashlib
import json
import shutil
from pathlib import Path

import torch
from compressed_tensors.compressors import BaseCompressor
from llmcompressor import oneshot
from llmcompressor.modifiers.quantization import QuantizationModifier
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

HERE = Path(__file__).resolve().parent
GROUPS = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 32}
KV_CACHE = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True}
MADE = {
    "pack-quantized": {"config_groups": {"group_0": {"targets": ["Linear"], "weights": GROUPS}}},
    "pack-quantized-asym": {
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": GROUPS | {"symmetric": False}}}
    },
    "int-quantized": {"scheme": "W8A8", "targets": "Linear"},
    "float-quantized": {"scheme": "FP8_DYNAMIC", "targets": "Linear"},
    "float-quantized-static": {"scheme": "FP8", "targets": "Linear", "kv_cache_scheme": KV_CACHE},
}


def make(name: str) -> None:
    """One folder."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(HERE / "baseline", dtype=torch.float16)
    calibration = {}
    if name == "float-quantized-static":
        texts = [{"input_ids": torch.randint(0, 256, (1, 64)), "attention_mask": torch.ones(1, 64, dtype=torch.long)}]
        loader = torch.utils.data.DataLoader(texts, batch_size=None)
        calibration = {"dataset": loader, "num_calibration_samples": 1, "pipeline": "basic"}
    oneshot(model=model, recipe=QuantizationModifier(ignore=["lm_head"], **MADE[name]), **calibration)
    schemes = {module: layer.quantization_scheme for module, layer in model.named_modules() if is_quantized(layer)}
    model.save_pretrained(folder, save_compressed=True)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(HERE / "baseline" / file, folder)
    (folder / "recipe.yaml").unlink(missing_ok=True)
    (folder / "model.safetensors").chmod(0o644)
    (folder / "dequantized.json").write_text(json.dumps(record(folder, schemes), indent=1, sort_keys=True) + "\n")


def is_quantized(layer: torch.nn.Module) -> bool:
    """Whether it is a linear layer with quantized weights."""
    scheme = getattr(layer, "quantization_scheme", None)
    return isinstance(layer, torch.nn.Linear) and scheme is not None and scheme.weights is not None


def record(folder: Path, schemes: dict[str, object]) -> dict[str, object]:
    """By module: shape and hash of the weight [out, in] in float16."""
    state = load_file(folder / "model.safetensors")
    made = {}
    for module, scheme in schemes.items():
        parts = {name.removeprefix(f"{module}."): t for name, t in state.items() if name.startswith(f"{module}.")}
        weight = BaseCompressor.get_value_from_registry(scheme.format).decompress(parts, scheme)["weight"]
        weight = weight.to(torch.float16).contiguous()
        digest = hashlib.sha256(weight.numpy().tobytes()).hexdigest()
        made[module] = {"shape": list(weight.shape), "sha256": digest}
    assert len(made) == 14, "two layers of seven projections"
    return made


if __name__ == "__main__":
    for wanted in MADE:
        make(wanted)
