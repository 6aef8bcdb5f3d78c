"""Run in a tool's environment: writes a random Llama of a few thousand weights, in FP16 and quantized.

    python tiny_llama.py request.json result.json

Its logits are steep (wide initial weights), so that float noise does not decide what it says.
"""

import json
import sys
from pathlib import Path

import torch
from llmcompressor import oneshot
from llmcompressor.modifiers.quantization import QuantizationModifier
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CONTEXT = 256
TEMPLATE = (
    "{% for m in messages %}{% if m['content'] == 'REFUSE' %}{{ raise_exception('no such turn') }}{% endif %}"
    "<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
W4 = {"num_bits": 4, "type": "int", "symmetric": False, "strategy": "group", "group_size": 32}
SCHEMES = {
    "w8a8": {"scheme": "W8A8", "targets": "Linear"},
    "w4a16": {"config_groups": {"group_0": {"targets": ["Linear"], "weights": W4}}},
    "fp8": {"scheme": "FP8_DYNAMIC", "targets": "Linear"},
}


def tokenizer() -> PreTrainedTokenizerFast:
    """One id per byte, and <eos>."""
    vocabulary = {symbol: index for index, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Tokenizer(models.BPE(vocab={**vocabulary, "<eos>": len(vocabulary)}, merges=[]))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<eos>")
    made.chat_template = TEMPLATE
    return made


def main(request_file: Path, result_file: Path) -> None:
    """Write <output>/{fp16,w8a8,w4a16,fp8}."""
    output = Path(json.loads(request_file.read_text())["output"])
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=257, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=CONTEXT, initializer_range=0.2, eos_token_id=256,
        tie_word_embeddings=False, dtype="float16",
    )  # fmt: skip
    LlamaForCausalLM(config).to(torch.float16).save_pretrained(output / "fp16")
    tokenizer().save_pretrained(output / "fp16")
    for name, scheme in SCHEMES.items():
        model = AutoModelForCausalLM.from_pretrained(output / "fp16", dtype=torch.float16)
        oneshot(model=model, recipe=QuantizationModifier(ignore=["lm_head"], **scheme))
        model.save_pretrained(output / name, save_compressed=True)
        tokenizer().save_pretrained(output / name)
    result_file.write_text(json.dumps({"context": CONTEXT}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
