"""Worker: quantizes a checkpoint with GPTQModel 7.7 (GPTQ v1 and v2, AWQ GEMM). Runs in the tool's own environment.

In: request.json {model, output, scratch, dtype, method: gptq|awq, quantization: {bits, group_size, sym, ...}, skip,
calibration_file, sequence_length, seed, progress_file}; `quantization` are arguments of GPTQConfig or AWQConfig, `skip`
are patterns of modules to leave. Out: the directory `output`, and result.json as quantize_frame describes it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import quantize_frame as frame

os.environ.setdefault("GPTQMODEL_CPU_WORKERS", "2")  # with two cores it counts one, and then refuses to load

import torch
from gptqmodel import GPTQModel
from gptqmodel.quantization.config import AWQConfig, GPTQConfig
from quantize_output import Saving, finish
from transformers import AutoTokenizer

PACKAGES = ("torch", "transformers", "gptqmodel", "optimum", "safetensors", "numpy")
CONFIGS = {"gptq": GPTQConfig, "awq": AWQConfig}


def quantize(request: dict[str, Any]) -> dict[str, Any]:
    """Quantize `request["model"]` into `request["output"]`. Raises Refusal."""
    source, made = Path(request["model"]), Path(request["scratch"])
    os.chdir(made.parent)  # it writes logs/ where it stands
    dtype = getattr(torch, request["dtype"])
    computing = computing_dtype(request["method"], dtype)
    progress = frame.Progress(Path(request["progress_file"]), frame.num_layers(source))
    texts = frame.read_texts(request, AutoTokenizer.from_pretrained(source))
    if request["method"] == "awq":
        texts = frame.blocks(texts, request["sequence_length"])
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    skipped = {"dynamic": {f"-:{pattern}": {} for pattern in request["skip"]}} if request["skip"] else {}
    options = CONFIGS[request["method"]](**request["quantization"], **skipped, device=device, offload_to_disk=False)
    model = GPTQModel.load(str(source), options, dtype=computing)
    model.layer_callback = LayersReported(progress)
    model.quantize(
        [{"input_ids": ids, "attention_mask": [1] * len(ids)} for ids in texts],
        calibration_data_min_length=1,
    )
    progress.say("saving")
    made.mkdir(parents=True)
    model.save(str(made))
    saved = json.loads((made / "config.json").read_text(encoding="utf-8"))["quantization_config"]
    notes = finish(Saving(made, source, Path(request["output"]), dtype), saved)
    computed_in = str(computing).removeprefix("torch.")
    return {"calibration": frame.used(texts), "notes": [*notes, f"computed on {frame.place()} in {computed_in}"]}


def computing_dtype(method: str, dtype: torch.dtype) -> torch.dtype:
    """GPTQModel takes bfloat16 on a CPU unless told otherwise, and saves norms so; its AWQ refuses float32."""
    return torch.float32 if method == "gptq" and not torch.cuda.is_available() else dtype


class LayersReported:
    """What GPTQModel calls when a layer is done."""

    def __init__(self, progress: frame.Progress) -> None:
        self.progress = progress

    def layer_complete(self, *, layer_idx: int, submodule_finalized: bool) -> None:
        """Count the layer, once."""
        if submodule_finalized:
            self.progress.say("quantizing", advance=1)


if __name__ == "__main__":
    sys.exit(frame.main(sys.argv, quantize, PACKAGES))
