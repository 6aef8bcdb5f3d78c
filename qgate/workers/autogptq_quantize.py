"""Worker: quantizes a checkpoint with AutoGPTQ 0.7.1 (GPTQ, checkpoint format v1). Runs in the tool's own environment.

In: request.json {model, output, scratch, dtype, quantization: {bits, group_size, damp_percent, desc_act, static_groups,
sym, true_sequential}, calibration_file, sequence_length, seed, progress_file}. Out: the directory `output`, and
result.json as quantize_frame describes it.

AutoGPTQ stopped at transformers 4, so it reads a view of the checkpoint. On a CPU the arithmetic is float32.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import quantize_frame as frame
import torch
from auto_gptq import BaseQuantizeConfig
from auto_gptq.modeling import _base, _utils
from auto_gptq.modeling._const import CPU, CUDA_0
from auto_gptq.modeling.auto import GPTQ_CAUSAL_LM_MODEL_MAP
from quantize_output import Saving, finish
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers4_view import view

PACKAGES = ("torch", "transformers", "auto-gptq", "safetensors", "numpy")
PATHS = ("model_name_or_path", "model_file_base_name")
"""Entries of AutoGPTQ's config that say where it saved; null in a checkpoint that is at home anywhere."""


def quantize(request: dict[str, Any]) -> dict[str, Any]:
    """Quantize `request["model"]` into `request["output"]`. Raises Refusal."""
    source, scratch = Path(request["model"]), Path(request["scratch"])
    readable = readable_view(source, scratch / "view")
    kind = known_architecture(readable)
    computing = getattr(torch, request["dtype"]) if torch.cuda.is_available() else torch.float32
    progress = frame.Progress(Path(request["progress_file"]), frame.num_layers(source))
    texts = frame.read_texts(request, AutoTokenizer.from_pretrained(readable))
    options = BaseQuantizeConfig(**request["quantization"])
    with cuda_not_needed(), layers_reported(progress):
        plain = AutoModelForCausalLM.from_pretrained(readable, torch_dtype=computing).eval()
        model = GPTQ_CAUSAL_LM_MODEL_MAP[kind](plain, quantized=False, quantize_config=options)
        model.quantize([{"input_ids": ids, "attention_mask": [1] * len(ids)} for ids in texts])
        progress.say("saving")
        model.save_quantized(str(scratch / "made"))
    saved = {key: value for key, value in options.to_dict().items() if key not in PATHS}
    saving = Saving(scratch / "made", source, Path(request["output"]), getattr(torch, request["dtype"]))
    notes = finish(saving, {**saved, "checkpoint_format": "gptq"})
    computed_in = str(computing).removeprefix("torch.")
    return {"calibration": frame.used(texts), "notes": [*notes, f"computed on {frame.place()} in {computed_in}"]}


def readable_view(source: Path, target: Path) -> Path:
    """The checkpoint as transformers 4 reads it. Raises Refusal."""
    try:
        return view(source, target)
    except ValueError as error:
        raise frame.Refusal(str(error), "use the quantizer gptqmodel, which runs on transformers 5") from None


def known_architecture(source: Path) -> str:
    """The model type. Raises Refusal for one that AutoGPTQ does not know; its last release is of March 2024."""
    kind = AutoConfig.from_pretrained(source).model_type
    if kind not in GPTQ_CAUSAL_LM_MODEL_MAP:
        raise frame.Refusal(f"AutoGPTQ 0.7.1 has no {kind} and is archived", "use the quantizer gptqmodel")
    return kind


@contextmanager
def cuda_not_needed() -> Iterator[None]:
    """AutoGPTQ moves layers to the first GPU and waits for it, though nothing it then does needs one.

    Its third demand, a check in `from_pretrained`, is passed by: the model is loaded by transformers itself.
    """
    if torch.cuda.is_available():
        yield
        return
    original = torch.cuda.synchronize
    _base.CUDA_0, _utils.CUDA_0, torch.cuda.synchronize = CPU, CPU, lambda *_args: None
    try:
        yield
    finally:
        _base.CUDA_0, _utils.CUDA_0, torch.cuda.synchronize = CUDA_0, CUDA_0, original


@contextmanager
def layers_reported(progress: frame.Progress) -> Iterator[None]:
    """Count a layer at each line that AutoGPTQ logs when it begins one."""

    class Counter(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("Start quantizing layer"):
                progress.say("quantizing", advance=1)

    counter = Counter()
    _base.logger.addHandler(counter)
    try:
        yield
    finally:
        _base.logger.removeHandler(counter)


if __name__ == "__main__":
    sys.exit(frame.main(sys.argv, quantize, PACKAGES))
