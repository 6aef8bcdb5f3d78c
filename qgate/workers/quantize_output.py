"""What a quantizing package saved in, a checkpoint that every reader finds its way in out. Part of each such worker.

The packages differ in what they leave behind; a served checkpoint must not. Here: weight files under the names that
transformers and vLLM look for; floats in the recipe's dtype; the output head of a model with tied embeddings not stored
a second time; no bias that the model does not have; config.json as the model's own with the dtype that is stored and a
`quantization_config` that names no path of this machine; tokenizer, template and generation config byte for byte.
Touches the disk.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from quantize_frame import CARRIED, Refusal
from safetensors import safe_open
from safetensors.torch import save_file

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
HEAD, EMBEDDING, BIAS = "lm_head.weight", "embed_tokens.weight", ".bias"
WORD, EVEN_WIDTHS = 32, (2, 4, 8)


@dataclass(frozen=True)
class Saving:
    """What is to be made of what a package saved."""

    made: Path
    """Where the package saved; emptied here."""
    source: Path
    """The unquantized checkpoint."""
    output: Path
    dtype: torch.dtype
    """Of scales and of weights that are not quantized."""


def finish(saving: Saving, quantization: dict[str, Any]) -> list[str]:
    """Fill `saving.output`. Returns what a reader should know. Raises Refusal for a value that is not finite."""
    config = json.loads((saving.source / "config.json").read_text(encoding="utf-8"))
    files = sorted(saving.made.glob("*.safetensors"))
    known, dropped, where = names(saving.source), [], {}
    v1_bits = quantization["bits"] if quantization.get("checkpoint_format") == "gptq" else None
    ties = bool(config.get("tie_word_embeddings")) and has_tied_head(files)
    for number, file in enumerate(files, start=1):
        kept = {}
        for name, tensor in tensors(file):
            if (ties and name == HEAD) or (name.endswith(BIAS) and name not in known and not tensor.any()):
                dropped.append(name)
            else:
                check_zero_points(name, tensor, v1_bits)
                kept[name] = converted(name, tensor, saving.dtype)
        target = WEIGHTS if len(files) == 1 else f"model-{number:05d}-of-{len(files):05d}.safetensors"
        save_file(kept, saving.output / target, metadata={"format": "pt"})
        where |= dict.fromkeys(kept, target)
    if len(files) > 1:
        write_json(saving.output / INDEX, {"metadata": {}, "weight_map": where})
    if HEAD in where and config.get("tie_word_embeddings"):
        config["tie_word_embeddings"] = False
    config["dtype" if "dtype" in config else "torch_dtype"] = str(saving.dtype).removeprefix("torch.")
    write_json(saving.output / "config.json", {**config, "quantization_config": without_paths(quantization)})
    carry(saving.source, saving.output)
    shutil.rmtree(saving.made)
    return [f"{len(dropped)} tensors that only repeat others or are zero were left out"] if dropped else []


def tensors(file: Path, ending: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Name and tensor of each entry of a safetensors file whose name has this ending, one in memory at a time."""
    with safe_open(file, framework="pt") as stored:
        for name in stored.keys():  # noqa: SIM118 (not a dict)
            if name.endswith(ending):
                yield name, stored.get_tensor(name)


def names(folder: Path) -> frozenset[str]:
    """The names of all tensors of a checkpoint."""
    found: set[str] = set()
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="pt") as stored:
            found.update(stored.keys())
    return frozenset(found)


def has_tied_head(files: list[Path]) -> bool:
    """Whether the output head is stored, and is the input embedding bit for bit."""
    pair = [tensor for ending in (HEAD, EMBEDDING) for file in files for _, tensor in tensors(file, ending)]
    return len(pair) == 2 and torch.equal(*pair)


def converted(name: str, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The tensor, floats in `dtype`. Raises Refusal where it is not finite then: it can only emit garbage."""
    if not tensor.is_floating_point():
        return tensor
    result = tensor.to(dtype)
    if not torch.isfinite(result).all():
        raise Refusal(
            f"the quantized tensor {name} has values that are not finite",
            "use bfloat16 as baseline.dtype, or other calibration texts",
        )
    return result


def check_zero_points(name: str, tensor: torch.Tensor, v1_bits: int | None) -> None:
    """Raises Refusal for a zero point of 0 in GPTQ's format v1, which stores it less one: -1 spoils its neighbours.

    Both packages pack eight values in a word by shifting; the borrow, or the sign's ones, run on into the next values.
    """
    if v1_bits not in EVEN_WIDTHS or not name.endswith(".qzeros"):
        return
    mask = 2**v1_bits - 1
    if any(bool(((tensor >> shift & mask) == mask).any()) for shift in range(0, WORD, v1_bits)):
        raise Refusal(
            f"{name} has a zero point of 0, which GPTQ's checkpoint format v1 cannot store",
            "set `sym: true`, or use the quantizer gptqmodel with `format: gptq_v2`",
        )


def without_paths(value: Any) -> Any:
    """The same without any entry of a mapping that is a path of this machine, or is empty once they are gone."""
    if isinstance(value, list):
        return [without_paths(item) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned = {key: without_paths(item) for key, item in value.items()}
    return {key: item for key, item in cleaned.items() if not (isinstance(item, str) and item.startswith("/"))}


def carry(source: Path, output: Path) -> None:
    """Copy tokenizer, template and generation config as they are: a package saves them in its own version's words."""
    for file in source.iterdir():
        if file.is_file() and file.suffix in CARRIED and file.name not in {"config.json", INDEX}:
            shutil.copyfile(file, output / file.name)
    for file in output.iterdir():
        file.chmod(0o644)


def write_json(path: Path, value: Any) -> None:
    """JSON as transformers writes it."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
