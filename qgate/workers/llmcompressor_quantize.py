"""Worker: quantizes a checkpoint with llm-compressor. Runs in the tool's own environment; imports nothing of qgate.

In: request.json {model, output, dtype, modifiers: [{name, args}], calibration_file, sequence_length, seed,
progress_file}. `calibration_file` has a JSON object with `text` or `messages` a line (or is null).
Out: the directory `output`, and result.json {packages, wall_s, peak_memory_bytes, calibration: {num_samples,
num_tokens}, notes}; on a known failure result.json {error, advice} and a non-zero exit.

Progress: `progress_file` always holds one whole JSON object {step, done, total}; `done` counts decoder layers over all
modifiers that run over them. On a CPU the arithmetic is float32 (half precision is several times slower there); scales
and unquantized weights are saved in `dtype`.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import quantize_frame as frame
import torch
import worker_frame
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from llmcompressor import oneshot
from llmcompressor.core import LifecycleCallbacks
from llmcompressor.modifiers.gptq import GPTQModifier
from llmcompressor.modifiers.quantization import QuantizationModifier
from llmcompressor.modifiers.transform.awq import AWQModifier
from llmcompressor.modifiers.transform.smoothquant import SmoothQuantModifier
from llmcompressor.pipelines.cache import IntermediatesCache
from safetensors import safe_open
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

PACKAGES = ("torch", "transformers", "llmcompressor", "compressed-tensors", "safetensors", "numpy")
MODIFIERS = {kind.__name__: kind for kind in (AWQModifier, GPTQModifier, QuantizationModifier, SmoothQuantModifier)}
OVER_LAYERS = frozenset({"AWQModifier", "GPTQModifier", "SmoothQuantModifier"})
FLOAT32_SHARE = 0.4
"""Of the accelerator's free memory, for weights in float32: the rest is for activations and Hessians."""


def quantize(request: dict[str, Any]) -> dict[str, Any]:
    """Quantize `request["model"]` into `request["output"]`. Raises Refusal."""
    torch.manual_seed(request["seed"])
    source, output = Path(request["model"]), Path(request["output"])
    dtype = getattr(torch, request["dtype"])
    model = load_model(source, computing_dtype(source, dtype))
    computed_in = str(model.dtype).removeprefix("torch.")
    layers = model.config.get_text_config().num_hidden_layers
    modifiers = [make_modifier(spec) for spec in request["modifiers"]]
    passes = sum(spec["name"] in OVER_LAYERS for spec in request["modifiers"])
    progress = frame.Progress(Path(request["progress_file"]), layers * passes)
    texts: list[list[int]] = []
    if request["calibration_file"] is not None:
        texts = frame.read_texts(request, AutoTokenizer.from_pretrained(source))
    notes = run(model, modifiers, texts, progress)
    progress.say("saving")
    save(model.to(dtype), source, output)
    check_finite(output)
    return {
        "calibration": frame.used(texts),
        "notes": [*notes, f"computed on {frame.place()} in {computed_in}"],
        "peak_memory_bytes": frame.peak_memory_bytes(),
    }


def computing_dtype(source: Path, dtype: torch.dtype) -> torch.dtype:
    """float32 where the model fits so: in float16, AWQ's trial scales overflow. Else the weights' own `dtype`."""
    if not torch.cuda.is_available():
        return torch.float32
    half_bytes = sum(file.stat().st_size for file in source.glob("*.safetensors"))
    free_bytes, _ = torch.cuda.mem_get_info()
    return torch.float32 if 2 * half_bytes < FLOAT32_SHARE * free_bytes else dtype


def load_model(source: Path, dtype: torch.dtype) -> PreTrainedModel:
    """The model in `dtype`. Raises Refusal for an architecture that this transformers does not know."""
    try:
        return AutoModelForCausalLM.from_pretrained(source, dtype=dtype)
    except (ValueError, KeyError) as error:
        raise frame.Refusal(
            f"transformers {version('transformers')} cannot load {source}: {error}",
            "use an environment whose transformers knows this architecture (variant's `env`)",
        ) from None


def make_modifier(spec: dict[str, Any]) -> Any:
    """The llm-compressor modifier that `spec` names."""
    args = dict(spec["args"])
    if "config_groups" in args:
        args["config_groups"] = {
            name: QuantizationScheme(
                **{key: QuantizationArgs(**value) if isinstance(value, dict) else value for key, value in group.items()}
            )
            for name, group in args["config_groups"].items()
        }
    return MODIFIERS[spec["name"]](**args)


def run(model: PreTrainedModel, modifiers: list[Any], texts: list[list[int]], progress: frame.Progress) -> list[str]:
    """Apply the modifiers to `model` in place. Returns what a reader must know about how it went."""
    loader = DataLoader([{"input_ids": torch.tensor(ids)} for ids in texts], batch_size=1) if texts else None
    with layers_reported(progress), pinning_where_possible():
        oneshot(model=model, recipe=modifiers, dataset=loader, num_calibration_samples=max(len(texts), 1))
    notes = []
    for modifier in modifiers:
        fallen_back = getattr(modifier, "_rtn_fallback_module_names", [])
        if fallen_back:
            notes.append(f"GPTQ's Hessian was singular in {len(fallen_back)} modules, which were rounded to nearest")
    return notes


@contextmanager
def layers_reported(progress: frame.Progress) -> Iterator[None]:
    """Count a layer at each of llm-compressor's sequential epochs."""
    original = LifecycleCallbacks.sequential_epoch_end

    def report(*args: Any, **kwargs: Any) -> Any:
        answer = original(*args, **kwargs)
        progress.say("quantizing", advance=1)
        return answer

    LifecycleCallbacks.sequential_epoch_end = report
    try:
        yield
    finally:
        LifecycleCallbacks.sequential_epoch_end = original


@contextmanager
def pinning_where_possible() -> Iterator[None]:
    """llm-compressor 0.14's AWQ pins its cache unconditionally, and torch refuses to pin memory without an accelerator.

    Pinning only speeds up copies to one, so where there is none it is left out.
    """
    original = IntermediatesCache.pin_memory
    if not torch.accelerator.is_available():
        IntermediatesCache.pin_memory = lambda *_args, **_kwargs: None
    try:
        yield
    finally:
        IntermediatesCache.pin_memory = original


def save(model: PreTrainedModel, source: Path, output: Path) -> None:
    """Save compressed weights and config; tokenizer, template and generation config are the source's, byte for byte."""
    model.save_pretrained(output, save_compressed=True)
    for file in source.iterdir():
        has_own = file.name == "config.json" or file.name.endswith(".safetensors.index.json")
        if file.is_file() and file.suffix in frame.CARRIED and not has_own:
            shutil.copyfile(file, output / file.name)
    for file in output.iterdir():
        file.chmod(0o644)


def check_finite(output: Path) -> None:
    """Raises Refusal where a stored scale or weight is NaN or infinite: such a model can only emit garbage."""
    for file in sorted(output.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (not a dict)
                tensor = tensors.get_tensor(name)
                if tensor.is_floating_point() and not torch.isfinite(tensor.float()).all():
                    raise frame.Refusal(
                        f"the quantized tensor {name} has values that are not finite",
                        "use bfloat16 as baseline.dtype, or other calibration texts",
                    )


if __name__ == "__main__":
    sys.exit(worker_frame.main(sys.argv, quantize, PACKAGES))
