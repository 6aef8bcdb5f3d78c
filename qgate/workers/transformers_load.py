"""A checkpoint directory in, a model ready to serve out. Part of the worker transformers_serve; reads the disk.

Weights are loaded in the arithmetic dtype; compressed-tensors checkpoints keep their compressed weights only where an
exact integer product takes them as they are, all others become dense; AWQ and GPTQ are unpacked before transformers
sees them. A probe compares the prepared model with transformers' own forward before anything is served.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Collection
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
import transformers_cache
import transformers_linear
import transformers_packed
from torch import Tensor, nn
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

PACKAGES = ("torch", "transformers", "tokenizers", "compressed-tensors", "gptqmodel", "autoawq")
PROBE_TOKENS = 24
PROBE_TOLERANCE = {torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.2}
"""Largest accepted difference of a probe logit, as a share of the largest logit."""


@dataclass
class Loaded:
    """A served model: what generation and scoring need, and what decided its numbers."""

    body: nn.Module
    """Token ids to hidden states."""
    head: nn.Module
    """Hidden states to logits."""
    tokenizer: Any
    device: torch.device
    dtype: torch.dtype
    vocab_size: int
    context: int
    """Longest prompt plus answer in tokens."""
    eos_ids: frozenset[int]
    kernels: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [rows, width] -> logits float32 [rows, V] on the CPU."""
        return self.head(hidden).float().cpu()

    def facts(self) -> dict[str, Any]:
        """Fields of EngineFacts that only the worker knows."""
        return {
            "version": version("transformers"),
            "device": _device_name(self.device),
            "dtype": str(self.dtype).removeprefix("torch."),
            "kernels": self.kernels,
            "packages": {"python": platform.python_version(), **_versions()},
            "notes": self.notes,
            "details": {"context": self.context, "eos_ids": sorted(self.eos_ids)},
        }


def load(checkpoint: Path, *, dtype: str, device: str) -> Loaded:
    """Load and prepare `checkpoint`. `dtype` and `device` may be `auto`. Raises OSError, ValueError, RuntimeError."""
    place = torch.device(_choose_device(device))
    arithmetic = _choose_dtype(dtype, place)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model, unpacked = _load_model(checkpoint, arithmetic)
    model = model.to(place).eval()
    kernels, notes = _prepare_linears(model, unpacked)
    config = model.config.get_text_config()
    loaded = Loaded(
        body=model.get_decoder(),
        head=model.get_output_embeddings(),
        tokenizer=tokenizer,
        device=place,
        dtype=arithmetic,
        vocab_size=config.vocab_size,
        context=config.max_position_embeddings,
        eos_ids=_eos_ids(model, tokenizer),
        kernels={**kernels, "attention": "torch SDPA, grouped queries, one slot per sequence"},
        notes=notes,
    )
    transformers_linear.set_rounding(model, False)
    reference = _reference_logits(model)
    transformers_cache.register()
    model.set_attn_implementation(transformers_cache.ATTENTION)
    _probe(loaded, reference)
    transformers_linear.set_rounding(model, True)
    return loaded


def _load_model(checkpoint: Path, dtype: torch.dtype) -> tuple[nn.Module, frozenset[str]]:
    """The model, and the names of its layers whose weights were unpacked on the way. Raises ValueError, OSError."""
    raw = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    if transformers_packed.method(raw) is None:
        return AutoModelForCausalLM.from_pretrained(checkpoint, dtype=dtype, attn_implementation="sdpa"), frozenset()
    state, unpacked = transformers_packed.dense_state(checkpoint, raw["quantization_config"], dtype)
    config = AutoConfig.from_pretrained(checkpoint)
    del config.quantization_config
    model, loading = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].from_pretrained(
        None, config=config, state_dict=state, dtype=dtype, attn_implementation="sdpa", output_loading_info=True
    )
    surplus = [name for name in loading["unexpected_keys"] if state[name].any()]  # AutoGPTQ stores biases of zeros
    wrong = [*loading["missing_keys"], *surplus, *loading["mismatched_keys"]]
    if wrong:
        raise ValueError(
            f"{len(wrong)} tensors are missing, too many or of another shape: {sorted(map(str, wrong))[:3]}"
        )
    if (checkpoint / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(checkpoint)
    return model, frozenset(unpacked)


def _choose_device(device: str) -> str:
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def _choose_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """On a CPU float32 unless a dtype is asked for: `auto:NAME` names the GPU's."""
    if dtype.startswith("auto:"):
        dtype = "float32" if device.type == "cpu" else dtype.removeprefix("auto:")
    return getattr(torch, dtype)


def _eos_ids(model: nn.Module, tokenizer: Any) -> frozenset[int]:
    """Ids that end an answer: of generation_config.json and the tokenizer. Nothing else of the former is used."""
    found: set[int] = set()
    for ids in (model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id):
        found.update(ids if isinstance(ids, list) else [] if ids is None else [ids])
    return frozenset(found)


def _prepare_linears(model: nn.Module, unpacked: Collection[str] = ()) -> tuple[dict[str, str], list[str]]:
    """Replace every Linear by its fast equal. Returns kernels and notes for EngineFacts."""
    rounder, exact = transformers_linear.TokenRounder(), transformers_linear.int8_is_exact()
    used: dict[str, int] = {}
    for name, layer in list(model.named_modules()):
        if isinstance(layer, nn.Linear):
            kind, fast = _fast(layer, rounder, exact)
            kind = f"dequantized {kind}" if name in unpacked else kind
            model.set_submodule(name, fast)
            used[kind] = used.get(kind, 0) + 1
    notes = []
    if any(kind.startswith("dequantized") for kind in used):
        notes.append("weights are dequantized: no quantized kernel of vLLM is exercised")
    return {"linear": ", ".join(f"{num} x {kind}" for kind, num in sorted(used.items()))}, notes


def _fast(layer: nn.Linear, rounder: transformers_linear.TokenRounder, exact: bool) -> tuple[str, nn.Module]:
    """What one Linear becomes, and in words."""
    scheme = getattr(layer, "quantization_scheme", None)
    if scheme is not None and exact and transformers_linear.is_dynamic_int8(scheme) and _is_plain_int8(layer):
        kind = "int8 x int8 -> int32, scales per channel and token"
        return kind, transformers_linear.Int8Linear(layer.weight, layer.weight_scale, layer.bias, rounder)
    if scheme is not None:
        _decompress(layer)
    product = transformers_linear.dense(layer.weight, layer.bias)
    how = "oneDNN packed" if isinstance(product, transformers_linear.PackedLinear) else "torch"
    kind = f"{str(layer.weight.dtype).removeprefix('torch.')} dense ({how})"
    if scheme is None:
        return kind, product
    if scheme.input_activations is None:
        return f"dequantized {kind}", product
    return f"dequantized {kind}, activations rounded by compressed-tensors", transformers_linear.RoundedLinear(
        layer, product
    )


def _is_plain_int8(layer: nn.Linear) -> bool:
    return layer.weight.dtype == torch.int8 and layer.weight.device.type == "cpu"


def _decompress(layer: nn.Linear) -> None:
    """Make a compressed-tensors Linear's weight dense, in place."""
    from compressed_tensors.compressors.base import decompress_module  # noqa: PLC0415
    from compressed_tensors.quantization import QuantizationStatus  # noqa: PLC0415

    if layer.quantization_status == QuantizationStatus.COMPRESSED:
        decompress_module(layer)


def _reference_logits(model: nn.Module) -> Tensor:
    """Logits [PROBE_TOKENS, V] of a fixed text by transformers' own forward."""
    return model(input_ids=_probe_ids(model.config.get_text_config().vocab_size).to(model.device)).logits[0].float()


def _probe_ids(vocab_size: int) -> Tensor:
    return torch.arange(1, PROBE_TOKENS + 1)[None] * 7919 % vocab_size


def _probe(loaded: Loaded, reference: Tensor) -> None:
    """A prompt and steps through the slot cache must give the reference's logits. Raises RuntimeError."""
    ids = _probe_ids(loaded.vocab_size).to(loaded.device)
    half = PROBE_TOKENS // 2
    cache = transformers_cache.SlotCache(1, PROBE_TOKENS)
    cache.begin_prompts([half], [[0]])
    rows = [loaded.logits(forward(loaded, ids[:, :half], cache=cache)[0])]
    for position in range(half, PROBE_TOKENS):
        positions, mask = cache.begin_step(1, loaded.device)
        hidden = forward(loaded, ids[:, position : position + 1], cache=cache, positions=positions, mask=mask)
        rows.append(loaded.logits(hidden[0]))
    if not torch.isfinite(reference).all():
        loaded.notes.append("the probe's logits are not finite in transformers' own forward either")
        return
    gap = float((torch.cat(rows) - reference.cpu()).abs().max() / reference.abs().max())
    if gap > PROBE_TOLERANCE[loaded.dtype]:
        raise RuntimeError(
            f"the fast path of this engine departs from transformers' own forward by {gap:.2%} of the largest logit"
        )


def forward(
    loaded: Loaded,
    ids: Tensor,
    *,
    cache: transformers_cache.SlotCache | None = None,
    positions: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Token ids [rows, new] -> hidden states [rows, new, width]; prompts start at position 0 and need no mask."""
    if positions is None:
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
    return loaded.body(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=cache is not None,
    ).last_hidden_state


def cache_bytes_per_token(loaded: Loaded) -> int:
    """Bytes of keys and values that one position takes in all layers."""
    config = loaded.body.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return 2 * config.num_hidden_layers * heads * width * loaded.dtype.itemsize


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
