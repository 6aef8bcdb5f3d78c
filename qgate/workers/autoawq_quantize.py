"""Worker: quantizes a checkpoint with AutoAWQ 0.2.9 (AWQ GEMM). Runs in the tool's own environment.

In: request.json {model, output, scratch, dtype, quantization: {w_bit, q_group_size, zero_point, version}, keep,
duo_scaling, clip, calibration_file, sequence_length, seed, progress_file}. Out: the directory `output`, and result.json
as quantize_frame describes it.

On a CPU the arithmetic is float32, which is several times faster there than float16.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import quantize_frame as frame
import torch
from awq import AutoAWQForCausalLM
from awq.models.auto import AWQ_CAUSAL_LM_MODEL_MAP
from awq.quantize.quantizer import AwqQuantizer
from quantize_output import Saving, finish
from torch import nn
from transformers import AutoConfig, AutoTokenizer

PACKAGES = ("torch", "transformers", "autoawq", "safetensors", "numpy")
PACKED_ROWS, CLIPPED_ROWS = 8, 64
NOT_CLIPPED = ("q_", "k_", "query", "key", "Wqkv")
"""Parts of names that AutoAWQ's search for clipping limits passes by."""


def quantize(request: dict[str, Any]) -> dict[str, Any]:
    """Quantize `request["model"]` into `request["output"]`. Raises Refusal."""
    source, made = Path(request["model"]), Path(request["scratch"])
    check_architecture(source)
    dtype = getattr(torch, request["dtype"])
    computing = dtype if torch.cuda.is_available() else torch.float32
    progress = frame.Progress(Path(request["progress_file"]), frame.num_layers(source))
    tokenizer = AutoTokenizer.from_pretrained(source)
    blocks = frame.blocks(frame.read_texts(request, tokenizer), request["sequence_length"])
    model = AutoAWQForCausalLM.from_pretrained(str(source), torch_dtype=computing, trust_remote_code=False)
    check_rows(model.model, clips=request["clip"])
    model.modules_to_not_convert = request["keep"]
    model.quantize(
        tokenizer,
        quant_config=request["quantization"],
        calib_data=blocks,
        max_calib_samples=len(blocks),
        max_calib_seq_len=len(blocks[0]),
        duo_scaling=request["duo_scaling"],
        apply_clip=request["clip"],
        quantizer_cls=quantizer_reporting_to(progress),
    )
    progress.say("saving")
    made.mkdir(parents=True)
    model.save_quantized(str(made))
    saving = Saving(made, source, Path(request["output"]), dtype)
    notes = finish(saving, model.quant_config.to_transformers_dict())
    computed_in = str(computing).removeprefix("torch.")
    return {"calibration": frame.used(blocks), "notes": [*notes, f"computed on {frame.place()} in {computed_in}"]}


def check_architecture(source: Path) -> None:
    """Raises Refusal for a model that AutoAWQ does not know; its last release knows no model after April 2025."""
    kind = AutoConfig.from_pretrained(source).model_type
    if kind not in AWQ_CAUSAL_LM_MODEL_MAP:
        raise frame.Refusal(
            f"AutoAWQ 0.2.9 has no {kind} and is archived", "use the quantizer gptqmodel with `method: awq`"
        )


def check_rows(model: nn.Module, *, clips: bool) -> None:
    """Raises Refusal where AutoAWQ would end with a bare assertion: it packs rows by eights and clips them by 64."""
    for name, layer in model.named_modules():
        if not isinstance(layer, nn.Linear) or name == "lm_head":
            continue
        clipped = clips and not any(part in name for part in NOT_CLIPPED)
        step = CLIPPED_ROWS if clipped else PACKED_ROWS
        if layer.out_features % step:
            advice = "set `apply_clip: false`" if clipped else "use the quantizer llmcompressor, which packs any width"
            raise frame.Refusal(f"{name} has {layer.out_features} rows, not a multiple of {step}", advice)


def quantizer_reporting_to(progress: frame.Progress) -> type[AwqQuantizer]:
    """AutoAWQ's quantizer, mended and counting layers."""

    class Quantizer(AwqQuantizer):
        def _compute_best_scale(self, x: Any, w_mean: Any, x_mean: Any, module2inspect: nn.Module, *rest: Any) -> Any:
            with state_dict_not_aliased(module2inspect):
                return super()._compute_best_scale(x, w_mean, x_mean, module2inspect, *rest)

        def _apply_quant(self, module: nn.Module, named_linears: dict[str, nn.Linear]) -> None:
            super()._apply_quant(module, named_linears)
            progress.say("quantizing", advance=1)

    return Quantizer


@contextmanager
def state_dict_not_aliased(module: nn.Module) -> Iterator[None]:
    """AutoAWQ restores the weights after each trial scale from `state_dict().cpu()`: on a CPU that is no copy.

    The trials then pile up in the weights, without an error: perplexity 344,440 where 15 is right. So the module hands
    out clones meanwhile, of what lies on the CPU.
    """
    original = module.state_dict

    def cloned(*args: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
        found = original(*args, **kwargs).items()
        return {name: tensor.clone() if tensor.device.type == "cpu" else tensor for name, tensor in found}

    module.state_dict = cloned
    try:
        yield
    finally:
        del module.state_dict


if __name__ == "__main__":
    sys.exit(frame.main(sys.argv, quantize, PACKAGES))
