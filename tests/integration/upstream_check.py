"""Run in the environment of one quantizing package: is each fault that its worker works around still there?

python upstream_check.py request.json result.json; request {tool, workers, baseline, texts, scratch}
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

REQUEST = json.loads(Path(sys.argv[1]).read_text())
sys.path.insert(0, REQUEST["workers"])
os.environ.setdefault("HF_HUB_OFFLINE", "1")
BASELINE, SCRATCH = Path(REQUEST["baseline"]), Path(REQUEST["scratch"])


def asked(name: str, **fields: Any) -> dict[str, Any]:
    """A worker's request, its output in a new folder."""
    output = SCRATCH / name
    output.mkdir(parents=True)
    return {
        "model": str(BASELINE), "output": str(output), "scratch": str(SCRATCH / f"{name}-scratch"), "dtype": "float16",
        "calibration_file": REQUEST["texts"], "sequence_length": 64, "seed": 0,
        "progress_file": str(SCRATCH / f"{name}.json"), **fields,
    }  # fmt: skip


def raised(call: Callable[[], Any]) -> str:
    """What a call ends with, or nothing."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def autoawq() -> dict[str, Any]:
    """How much of the weights a search for scales changes, which should leave them: with and without the mending."""
    import autoawq_quantize as worker

    quantization = {"w_bit": 4, "q_group_size": 32, "zero_point": True, "version": "GEMM"}
    fields = {"quantization": quantization, "keep": ["lm_head"], "duo_scaling": True, "clip": False}
    search, changes = worker.AwqQuantizer._compute_best_scale, []

    def watched(self: Any, x: Any, w_mean: Any, x_mean: Any, module: torch.nn.Module, *rest: Any) -> Any:
        before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        found = search(self, x, w_mean, x_mean, module, *rest)
        pairs = [(before[name], tensor) for name, tensor in module.state_dict().items()]
        changes.append(max(float((old - new).norm() / old.norm()) for old, new in pairs))
        return found

    result: dict[str, Any] = {}
    with patch.object(worker.AwqQuantizer, "_compute_best_scale", watched):
        worker.quantize(asked("mended", **fields))
        result["mended"] = max(changes)
        changes.clear()
        with patch.object(worker, "state_dict_not_aliased", lambda _module: nullcontext()):
            worker.quantize(asked("aliased", **fields))
        result["aliased"] = min(changes)
    (SCRATCH / "one.jsonl").write_text(json.dumps({"text": "One short text."}) + "\n")
    few = worker.quantize(asked("few", **fields) | {"calibration_file": str(SCRATCH / "one.jsonl")})
    return {**result, "few_texts": few["calibration"]}


def autogptq() -> dict[str, Any]:
    """What it wants CUDA for, what it leaves behind, and how transformers 4 reads the original."""
    import autogptq_quantize as worker
    from safetensors.torch import load_file
    from transformers import AutoConfig
    from transformers4_view import view

    quantization = {"bits": 4, "group_size": 32, "desc_act": False, "sym": True}
    left: dict[str, Any] = {}

    def look(saving: Any, _quantization: dict[str, Any]) -> list[str]:
        file = next(saving.made.glob("*.safetensors"))
        state = load_file(file)
        left.update(file=file.name, head="lm_head.weight" in state, biases=[k for k in state if k.endswith(".bias")])
        return []

    with patch.object(worker, "finish", look):
        worker.quantize(asked("left", quantization=quantization))

    @contextmanager
    def but_for(*names: str) -> Any:
        """The worker's patches, some of them taken back."""
        with worker_patches():
            if "device" in names:
                worker._base.CUDA_0 = worker.CUDA_0
            if "synchronize" in names:
                torch.cuda.synchronize = synchronize
            yield

    synchronize, worker_patches = torch.cuda.synchronize, worker.cuda_not_needed
    without = {}
    for name in ("device", "synchronize"):
        request = asked(name, quantization=quantization)
        with patch.object(worker, "cuda_not_needed", lambda name=name: but_for(name)):
            without[name] = raised(lambda request=request: worker.quantize(request))
    config = worker.BaseQuantizeConfig(**quantization)
    model = worker.GPTQ_CAUSAL_LM_MODEL_MAP["llama"]
    without["from_pretrained"] = raised(lambda: model.from_pretrained(str(BASELINE), config))
    return {
        "left": left,
        "without": without,
        "rope_theta": {
            "original": AutoConfig.from_pretrained(BASELINE).rope_theta,
            "view": AutoConfig.from_pretrained(view(BASELINE, SCRATCH / "view")).rope_theta,
        },
    }


def gptqmodel() -> dict[str, Any]:
    """Its dtype on a CPU, and the paths of the machine that its config names."""
    import gptqmodel_quantize as worker
    from gptqmodel.models._const import DEVICE
    from gptqmodel.utils.model import auto_dtype
    from transformers import AutoConfig

    meta = worker.GPTQConfig(bits=4, group_size=32).to_dict()["meta"]
    return {
        "auto_dtype": str(auto_dtype(AutoConfig.from_pretrained(BASELINE), DEVICE.CPU)),
        "paths": [value for value in meta.values() if isinstance(value, str) and value.startswith("/")],
    }


def awq_in_float32() -> dict[str, Any]:
    """GPTQModel's AWQ in float32: ends the process from another thread where it is refused."""
    import gptqmodel_quantize as worker

    request = asked("float32", method="awq", skip=[], quantization={"bits": 4, "group_size": 32, "sym": False})
    with patch.object(worker, "computing_dtype", lambda *_args: torch.float32):
        return worker.quantize(request)


def awq_of_two_lengths() -> dict[str, Any]:
    """Whether GPTQModel's AWQ makes of a long and a short text what it makes of the short one alone, in the first layer.

    Its norm takes the scales that were found, `v_proj` also the limits that its weights were clipped to.
    """
    import gptqmodel_quantize as worker
    from safetensors.torch import load_file

    first = Path(REQUEST["texts"]).read_text().splitlines()[0]
    short = json.dumps({"text": json.loads(first)["text"][:32]})
    made = {}
    with patch.object(worker.frame, "blocks", lambda texts, _longest: texts):
        for name, lines in {"both": [first, short], "short": [short], "long": [first]}.items():
            (SCRATCH / f"{name}.jsonl").write_text("\n".join(lines))
            request = asked(name, method="awq", skip=[], quantization={"bits": 4, "group_size": 32, "sym": False})
            worker.quantize(request | {"calibration_file": str(SCRATCH / f"{name}.jsonl")})
            made[name] = load_file(Path(request["output"]) / "model.safetensors")
    tensors = {"scales": "input_layernorm.weight", "limits": "self_attn.v_proj.scales"}
    return {
        what: [name for name in ("short", "long") if torch.equal(made["both"][key], made[name][key])]
        for what, key in ((what, f"model.layers.0.{tensor}") for what, tensor in tensors.items())
    }


def one_cpu_worker() -> dict[str, Any]:
    """GPTQModel with the number of workers that it counts for itself on two cores."""
    os.environ["GPTQMODEL_CPU_WORKERS"] = "1"
    import gptqmodel_quantize as worker

    config = worker.GPTQConfig(bits=4, group_size=32, offload_to_disk=False)
    return {"refused": raised(lambda: worker.GPTQModel.load(str(BASELINE), config, dtype=torch.float32))}


if __name__ == "__main__":
    SCRATCH.mkdir(parents=True, exist_ok=True)
    os.chdir(SCRATCH)
    checks = {
        "autoawq": autoawq,
        "autogptq": autogptq,
        "gptqmodel": gptqmodel,
        "one-worker": one_cpu_worker,
        "awq-float32": awq_in_float32,
        "awq-two-lengths": awq_of_two_lengths,
    }
    Path(sys.argv[2]).write_text(json.dumps(checks[REQUEST["tool"]]()))
