"""Makes the checkpoints beside it: one random Llama, as the real packages quantize and save it. Run once, by hand.

    <python of an environment of transformers 5>  make.py baseline
    <python of the environment autoawq>           make.py awq-gemm
    <python of the environment autogptq>          make.py gptq-v1 gptq-v1-desc-act
    <python of the environment gptqmodel>         make.py gptqmodel-gptq gptqmodel-gptq-v2 gptqmodel-gptq-asym gptqmodel-awq

Each folder then holds a whole checkpoint and dequantized.json: by module, the shape and the sha256 of the weight
[out, in] in float16, little endian, as the package itself unpacks it. qgate's own readers must arrive at the same bytes.
"""

import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "qgate" / "workers"))
TEXTS = HERE.parents[2] / "recipes" / "calibration" / "written.txt"
NUM_TEXTS, SEQUENCE_LENGTH, GROUP = 5, 64, 32
AUTOGPTQ = {
    "bits": 4, "group_size": GROUP, "damp_percent": 0.01, "static_groups": False, "sym": True, "true_sequential": True,
}  # fmt: skip
GPTQMODEL = {"bits": 4, "group_size": GROUP, "sym": True}
REQUESTS = {
    "awq-gemm": {
        "quantization": {"w_bit": 4, "q_group_size": GROUP, "zero_point": True, "version": "gemm"},
        "keep": ["lm_head"], "duo_scaling": True, "clip": True,
    },
    "gptq-v1": {"quantization": AUTOGPTQ | {"desc_act": False}},
    "gptq-v1-desc-act": {"quantization": AUTOGPTQ | {"desc_act": True}},
    "gptqmodel-gptq": {"method": "gptq", "skip": [], "quantization": GPTQMODEL | {"desc_act": False}},
    "gptqmodel-gptq-v2": {"method": "gptq", "skip": [], "quantization": GPTQMODEL | {"format": "gptq_v2"}},
    "gptqmodel-gptq-asym": {"method": "gptq", "skip": [], "quantization": GPTQMODEL | {"sym": False, "bits": 3}},
    "gptqmodel-awq": {"method": "awq", "skip": [], "quantization": GPTQMODEL | {"sym": False}},
}  # fmt: skip


def baseline() -> None:
    """Two layers of 64 columns; tied embeddings, and a rope_theta that transformers 4 would overlook."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=257, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=256, initializer_range=0.2, eos_token_id=256, bos_token_id=256,
        tie_word_embeddings=True, dtype="float16", rope_parameters={"rope_theta": 50000.0, "rope_type": "default"},
    )  # fmt: skip
    LlamaForCausalLM(config).to(torch.float16).save_pretrained(HERE / "baseline")
    vocabulary = {symbol: index for index, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Tokenizer(models.BPE(vocab={**vocabulary, "<eos>": len(vocabulary)}, merges=[]))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<eos>").save_pretrained(HERE / "baseline")


def quantized(name: str, scratch: Path) -> None:
    """One folder, through qgate's own worker."""
    if name.startswith("awq-gemm"):
        from autoawq_quantize import quantize
    elif name.startswith("gptq-v1"):
        from autogptq_quantize import quantize
    else:
        from gptqmodel_quantize import quantize

    target = HERE / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    texts = TEXTS.read_text(encoding="utf-8").split("\n\n")[:NUM_TEXTS]
    (scratch / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    paths = {
        "model": HERE / "baseline", "output": target, "scratch": scratch / "made", "progress_file": scratch / "p.json",
        "calibration_file": scratch / "texts.jsonl",
    }  # fmt: skip
    common = {"dtype": "float16", "sequence_length": SEQUENCE_LENGTH, "seed": 0}
    torch.manual_seed(0)
    print(name, quantize({key: str(path) for key, path in paths.items()} | common | REQUESTS[name])["notes"])
    weights = {"awq-gemm": autoawq_weights, "gptq-v1": autogptq_weights, "gptq-v1-desc-act": autogptq_weights}
    record = {
        module: {"shape": list(weight.shape), "sha256": hashlib.sha256(weight.numpy().tobytes()).hexdigest()}
        for module, weight in weights.get(name, gptqmodel_weights)(target)
    }
    assert len(record) == 14, "two layers of seven projections"
    (target / "dequantized.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def stored(folder: Path) -> Iterator[tuple[str, dict[str, torch.Tensor]]]:
    """Module and its packed tensors."""
    from safetensors.torch import load_file

    state = load_file(folder / "model.safetensors")
    for name in sorted(state):
        if name.endswith(".qweight"):
            module = name.removesuffix(".qweight")
            yield module, {part.rpartition(".")[2]: t for part, t in state.items() if part.startswith(module + ".")}


def autoawq_weights(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """By AutoAWQ's dequantize_gemm."""
    from awq.utils.packing_utils import dequantize_gemm

    for module, parts in stored(folder):
        yield module, dequantize_gemm(parts["qweight"], parts["qzeros"], parts["scales"], 4, GROUP).t().contiguous()


def autogptq_weights(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """By AutoGPTQ's layer, which has no function for it: what it makes of the unit vectors."""
    from auto_gptq.nn_modules.qlinear.qlinear_cuda import QuantLinear

    for module, parts in stored(folder):
        rows, columns = parts["g_idx"].numel(), parts["qweight"].shape[1]
        layer = QuantLinear(4, GROUP, rows, columns, bias=False, weight_dtype=torch.float16)
        layer.load_state_dict(parts)
        yield module, layer(torch.eye(rows, dtype=torch.float16)).t().contiguous()


def gptqmodel_weights(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """By GPTQModel's loader and its layers' dequantize_weight."""
    from gptqmodel import BACKEND, GPTQModel

    kind = json.loads((folder / "config.json").read_text())["quantization_config"]["quant_method"]
    backend = BACKEND.AWQ_TORCH if kind == "awq" else BACKEND.GPTQ_TORCH
    model = GPTQModel.load(str(folder), device="cpu", backend=backend, dtype=torch.float16)
    for module, layer in model.model.named_modules():
        if hasattr(layer, "qweight"):
            made = layer.dequantize_weight() if kind == "gptq" else awq_weight(layer)
            yield module, made.to(torch.float16).t().contiguous()


def awq_weight(layer: torch.nn.Module) -> torch.Tensor:
    """GPTQModel's AWQ layer [in, out], by the function that its forward uses."""
    from gptqmodel.quantization.awq.utils.packing_utils import dequantize_gemm

    return dequantize_gemm(layer.qweight, layer.qzeros, layer.scales, 4, GROUP)


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        if wanted == "baseline":
            baseline()
        else:
            with tempfile.TemporaryDirectory() as folder:
                quantized(wanted, Path(folder))
