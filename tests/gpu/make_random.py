"""A checkpoint of a given shape with random weights, in the format that vLLM's production kernels read. Runs where torch is.

    python make_random.py --shape qwen2.5-7b --format w4a16 --tokenizer DIR --output DIR [--device cuda]

fp16; of compressed-tensors w8a8 (int-quantized: int8 weights with a scale per output channel, activations quantized per
token at run time) and w4a16 (pack-quantized: eight 4-bit weights to an int32, a scale per 128 inputs); awq (AutoAWQ's
GEMM layout) and gptq (AutoGPTQ's). The weights' spread is 0.02 in each, so that activations stay finite. The tokenizer
is DIR's, its vocabulary filled up with words that no text gives, so that every id that is sampled can be decoded.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file

SPREAD = 0.02
GROUP = 128
SHARD_BYTES = 4 << 30


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder with grouped-query attention."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int

    def linears(self) -> dict[str, tuple[int, int]]:
        """Each linear layer of a block: rows (outputs) and columns (inputs)."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "self_attn.q_proj": (queries, self.hidden),
            "self_attn.k_proj": (keys, self.hidden),
            "self_attn.v_proj": (keys, self.hidden),
            "self_attn.o_proj": (self.hidden, queries),
            "mlp.gate_proj": (self.intermediate, self.hidden),
            "mlp.up_proj": (self.intermediate, self.hidden),
            "mlp.down_proj": (self.hidden, self.intermediate),
        }


SHAPES = {
    "qwen2.5-7b": Shape(3584, 18_944, 28, 28, 4, 128, 152_064),
    "small": Shape(1024, 2816, 12, 16, 8, 64, 49_408),
    "tiny": Shape(256, 512, 2, 4, 2, 64, 49_408),
}
BIASED = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
FORMATS = ("fp16", "w8a8", "w4a16", "awq", "gptq")
EVEN_SPREAD = (224 / 12) ** 0.5
"""Standard deviation of a number from 1 to 15, each as likely."""
MIDDLE = {"awq": 0x88888888, "gptq": 0x77777777}
"""Eight zero points of 8; GPTQ stores them less one."""


def config(shape: Shape, form: str) -> dict[str, object]:
    """config.json: Qwen2's architecture."""
    plain = {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "dtype": "float16", "hidden_act": "silu",
        "hidden_size": shape.hidden, "intermediate_size": shape.intermediate, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads, "head_dim": shape.head_dim,
        "vocab_size": shape.vocab, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "rope_theta": 1_000_000.0,
        "rope_parameters": {"rope_theta": 1_000_000.0, "rope_type": "default"}, "tie_word_embeddings": False,
        "bos_token_id": 1, "eos_token_id": 2, "use_sliding_window": False, "attention_dropout": 0.0,
    }  # fmt: skip
    return plain if form == "fp16" else {**plain, "quantization_config": _quantization(form)}


def _quantization(form: str) -> dict[str, object]:
    """As the package that makes the format writes it."""
    if form == "awq":
        return {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}
    if form == "gptq":
        return {
            "quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": True, "lm_head": False,
            "checkpoint_format": "gptq",
        }  # fmt: skip
    common = {"symmetric": True, "type": "int", "actorder": None, "block_structure": None, "observer": None}
    if form == "w8a8":
        name = "int-quantized"
        weights = {**common, "num_bits": 8, "strategy": "channel", "group_size": None, "dynamic": False}
        inputs = {**common, "num_bits": 8, "strategy": "token", "group_size": None, "dynamic": True}
    else:
        name = "pack-quantized"
        weights = {**common, "num_bits": 4, "strategy": "group", "group_size": GROUP, "dynamic": False}
        inputs = None
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs, "output_activations": None}
    return {
        "quant_method": "compressed-tensors", "format": name, "quantization_status": "compressed",
        "config_groups": {"group_0": group}, "ignore": ["lm_head"], "kv_cache_scheme": None,
    }  # fmt: skip


def tensors(shape: Shape, form: str, device: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor of the checkpoint, made on `device`, given on the CPU."""
    random = torch.Generator(device).manual_seed(0)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=random, device=device, dtype=torch.float16).mul_(SPREAD)

    def packed(*size: int) -> torch.Tensor:
        """Eight random numbers from 1 to 15 in each: with 0, eight below the middle, their mean would not be zero."""
        drawn = torch.randint(1, 16, (*size, 8), generator=random, device=device, dtype=torch.int32)
        return (drawn << torch.arange(0, 32, 4, dtype=torch.int32, device=device)).sum(-1, dtype=torch.int32)

    def linear(name: str, rows: int, columns: int) -> Iterator[tuple[str, torch.Tensor]]:
        if form == "fp16":
            yield f"{name}.weight", normal(rows, columns)
        elif form == "w8a8":
            drawn = torch.randint(-127, 128, (rows, columns), generator=random, device=device, dtype=torch.int8)
            yield f"{name}.weight", drawn
            yield f"{name}.weight_scale", _scale((rows, 1), 127 / 3**0.5, device)
        elif form == "w4a16":
            yield f"{name}.weight_packed", packed(rows, columns // 8)
            yield f"{name}.weight_scale", _scale((rows, columns // GROUP), EVEN_SPREAD, device)
            yield f"{name}.weight_shape", torch.tensor([rows, columns])
        else:
            size = (columns, rows // 8) if form == "awq" else (columns // 8, rows)
            middle = torch.tensor(MIDDLE[form], dtype=torch.int64).to(torch.int32)
            yield f"{name}.qweight", packed(*size)
            yield f"{name}.qzeros", middle.repeat(columns // GROUP, rows // 8)
            yield f"{name}.scales", _scale((columns // GROUP, rows), EVEN_SPREAD, device)
            if form == "gptq":
                yield f"{name}.g_idx", torch.arange(columns, dtype=torch.int32) // GROUP

    def every() -> Iterator[tuple[str, torch.Tensor]]:
        yield "model.embed_tokens.weight", normal(shape.vocab, shape.hidden)
        for index in range(shape.layers):
            block = f"model.layers.{index}"
            for name, (rows, columns) in shape.linears().items():
                yield from linear(f"{block}.{name}", rows, columns)
                if name in BIASED:
                    yield f"{block}.{name}.bias", normal(rows)
            for norm in ("input_layernorm", "post_attention_layernorm"):
                yield f"{block}.{norm}.weight", torch.ones(shape.hidden, dtype=torch.float16)
        yield "model.norm.weight", torch.ones(shape.hidden, dtype=torch.float16)
        yield "lm_head.weight", normal(shape.vocab, shape.hidden)

    for name, tensor in every():
        yield name, tensor.cpu()


def _scale(size: tuple[int, int], spread: float, device: str) -> torch.Tensor:
    """The scale that gives integers of this standard deviation the weights' spread."""
    return torch.full(size, SPREAD / spread, device=device, dtype=torch.float16)


def save(shape: Shape, form: str, device: str, output: Path) -> int:
    """Write the shards and their index. Returns the bytes written."""
    where: dict[str, str] = {}
    total, held, shard, number = 0, 0, {}, 1

    def write() -> None:
        name = f"model-{number:05}.safetensors"
        save_file(shard, output / name, metadata={"format": "pt"})
        where.update(dict.fromkeys(shard, name))

    for name, tensor in tensors(shape, form, device):
        if held and held + tensor.nbytes > SHARD_BYTES:
            write()
            held, shard, number = 0, {}, number + 1
        shard[name] = tensor
        held += tensor.nbytes
        total += tensor.nbytes
    write()
    index = {"metadata": {"total_size": total}, "weight_map": where}
    (output / "model.safetensors.index.json").write_text(json.dumps(index))
    return total


def save_tokenizer(source: Path, vocab: int, output: Path) -> None:
    """DIR's tokenizer with `vocab` words."""
    for name in ("tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json"):
        if (source / name).is_file():
            shutil.copy(source / name, output)
    tokenizer = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    words: dict[str, int] = tokenizer["model"]["vocab"]
    taken = set(words.values()) | {token["id"] for token in tokenizer["added_tokens"]}
    words.update({f"filler{number}": number for number in range(vocab) if number not in taken})
    (output / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")


def main() -> None:
    """Make one checkpoint."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--format", choices=FORMATS, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    began = time.monotonic()
    shape, half = SHAPES[given.shape], given.output.with_name(f"{given.output.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    (half / "config.json").write_text(json.dumps(config(shape, given.format), indent=1))
    (half / "generation_config.json").write_text(json.dumps({"bos_token_id": 1, "eos_token_id": 2}))
    save_tokenizer(given.tokenizer, shape.vocab, half)
    size = save(shape, given.format, given.device, half)
    shutil.rmtree(given.output, ignore_errors=True)
    half.rename(given.output)
    print(f"{given.output}: {size / 1e9:.1f} GB in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
