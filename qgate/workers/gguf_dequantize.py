"""Worker: a GGUF file becomes a Hugging Face directory in float16 or bfloat16. Runs in a tool's own environment.

In: request.json {gguf, output, dtype}. Out: the directory `output` (config.json, generation_config.json,
model.safetensors, tokenizer.json, tokenizer_config.json, chat_template.jinja) and result.json {packages, wall_s,
peak_memory_bytes, num_tensors, quantization_types, notes}; on failure result.json {error, advice} and a non-zero exit.

transformers unpacks the weights. It is not trusted with the tokenizer of a byte-level BPE file, for which it drops the
file's pre-tokenizer (digits no longer stand alone), adds decoder steps that turn `▁` into a space, and takes the first
control token for EOS; so that tokenizer is built here from the file's own vocabulary, merges and token types.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # everything that is read is local
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin make this 6 times slower on busy cores

import torch
from gguf import GGUFReader
from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, PreTrainedTokenizerFast
from worker_frame import Refusal, main

PACKAGES = ("torch", "transformers", "gguf", "tokenizers", "safetensors")
CONTROL, USER_DEFINED = 3, 4  # tokenizer.ggml.token_type, gguf specification

# Splitting patterns of byte-level BPE vocabularies by `tokenizer.ggml.pre`, as the models' own tokenizer.json has them.
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN_2 = LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")


def dequantize(request: dict[str, Any]) -> dict[str, Any]:
    """Write the model of the GGUF file to the directory `output`. Raises Refusal."""
    path, output, dtype = Path(request["gguf"]), Path(request["output"]), getattr(torch, request["dtype"])
    reader = GGUFReader(str(path))
    fields = {name: field.contents() for name, field in reader.fields.items() if name.startswith("tokenizer.")}
    context = reader.fields.get(f"{reader.fields['general.architecture'].contents()}.context_length")
    tokenizer = make_tokenizer(fields, path, None if context is None else int(context.contents()))
    save_model(path, output, dtype, tokenizer)
    tokenizer.save_pretrained(output)
    tidy_tokenizer_config(output / "tokenizer_config.json")
    for file in output.iterdir():
        file.chmod(0o644)
    return {
        "num_tensors": len(reader.tensors),
        "quantization_types": dict(Counter(tensor.tensor_type.name for tensor in reader.tensors)),
        "notes": [] if tokenizer.chat_template else ["the file has no chat template"],
    }


def save_model(path: Path, output: Path, dtype: torch.dtype, tokenizer: PreTrainedTokenizerFast) -> None:
    """Unpack the weights, give config and generation config the tokenizer's special ids, and save. Raises Refusal."""
    try:
        model = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=dtype, quantization_config=GgufConfig(dequantize=True)
        )
    except ValueError as error:
        raise Refusal(
            f"transformers cannot read {path.name}: {error}", "give the model as a directory instead"
        ) from None
    broken = [name for name, tensor in model.named_parameters() if not torch.isfinite(tensor).all()]
    if broken:
        raise Refusal(f"{broken[0]} has values that {dtype} cannot hold", "set baseline.dtype to bfloat16")
    for config in (model.config, model.generation_config):
        config.bos_token_id = tokenizer.bos_token_id
        config.eos_token_id = tokenizer.eos_token_id
        config.pad_token_id = tokenizer.pad_token_id
    vars(model.config).pop("_model_name_or_path", None)
    model.save_pretrained(output)


def make_tokenizer(fields: dict[str, Any], path: Path, context_length: int | None) -> PreTrainedTokenizerFast:
    """The tokenizer that the GGUF metadata describe, with its special tokens and chat template. Raises Refusal."""
    kind = fields.get("tokenizer.ggml.model")
    if kind == "gpt2":
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level_bpe(fields))
    else:
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    tokens = fields["tokenizer.ggml.tokens"]
    for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown")):
        index = fields.get(f"tokenizer.ggml.{key}_token_id")
        if index is not None:
            setattr(tokenizer, f"{name}_token", AddedToken(tokens[index], special=True, normalized=False))
    if tokenizer.eos_token_id is None:
        raise Refusal(f"{path.name} names no end-of-sequence token", "give the model as a directory instead")
    tokenizer.chat_template = fields.get("tokenizer.chat_template")
    tokenizer.clean_up_tokenization_spaces = False
    if context_length is not None:
        tokenizer.model_max_length = context_length
    return tokenizer


def byte_level_bpe(fields: dict[str, Any]) -> Tokenizer:
    """The tokenizer of a GPT-2 style vocabulary, with the pre-tokenizer that the file names. Raises Refusal."""
    tokens, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(
        BPE(
            vocab={token: index for index, token in enumerate(tokens)},
            merges=merges,
            fuse_unk=False,
            byte_fallback=False,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizer(fields.get("tokenizer.ggml.pre", "default"))
    tokenizer.decoder = decoders.ByteLevel()
    kinds = dict(zip(tokens, types, strict=True))
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t, kind in kinds.items() if kind == CONTROL])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t, kind in kinds.items() if kind == USER_DEFINED])
    return tokenizer


def pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    """The pre-tokenizer that `tokenizer.ggml.pre` names. Raises Refusal for one whose splits are not known here."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    match name:
        case "gpt-2":
            return pre_tokenizers.ByteLevel(add_prefix_space=False)
        case "smollm":
            digits = pre_tokenizers.Digits(individual_digits=True)
            return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
        case "llama-bpe":
            return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA_3), "isolated"), byte_level])
        case "qwen2":
            return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN_2), "isolated"), byte_level])
    raise Refusal(
        f"the GGUF file names the pre-tokenizer {name!r}, whose splits are not known here",
        "give the model as a Hugging Face directory or hub id: its tokenizer.json has them",
    )


def tidy_tokenizer_config(path: Path) -> None:
    """Name the class that every transformers reads; drop what describes this load rather than the model."""
    config = json.loads(path.read_text(encoding="utf-8"))
    for key in ("backend", "is_local", "local_files_only", "name_or_path"):
        config.pop(key, None)
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv, dequantize, PACKAGES))
