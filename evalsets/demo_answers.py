"""A model's greedy answers to (a part of) a set with plain transformers on a CPU, for the data cards.

    python evalsets/demo_answers.py evalsets/noisy-text MODEL answers.jsonl --where severity=0,3 --max-tokens 48

Runs in the environment of the transformers engine. One JSON object per item with `id` and `text`, for card.py; items
that are answered in the file already are passed over, so a stopped run goes on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def wanted(item: dict[str, Any], conditions: list[str]) -> bool:
    """Whether an item has, for each `key=value,value`, one of the values."""
    fields = item["slices"] | {key: str(item[key]) for key in ("kind", "language", "difficulty")}
    pairs = (condition.split("=", 1) for condition in conditions)
    return all(fields.get(key) in values.split(",") for key, values in pairs)


def main() -> None:
    """Answer the items that are still open, in batches of like length."""
    parser = argparse.ArgumentParser(description="Greedy answers of a model, float32 on a CPU.")
    parser.add_argument("evalset", type=Path, help="folder with items.jsonl")
    parser.add_argument("model", type=Path, help="model folder in Hugging Face format")
    parser.add_argument("answers", type=Path, help="file to append to")
    parser.add_argument("--where", nargs="*", default=[], metavar="KEY=VALUES")
    parser.add_argument("--max-tokens", type=int, default=1024, help="longest answer, where the item asks for more")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    items = [json.loads(line) for line in (args.evalset / "items.jsonl").read_bytes().split(b"\n") if line]
    done = args.answers.read_bytes().split(b"\n") if args.answers.exists() else []
    answered = {json.loads(line)["id"] for line in done if line}
    open_items = [item for item in items if wanted(item, args.where) and item["id"] not in answered]
    open_items.sort(key=lambda item: (item.get("max_tokens", 0), len(item["messages"][-1]["content"])))
    tokenizer = AutoTokenizer.from_pretrained(args.model, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token or "<|im_end|>"
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    with args.answers.open("a", encoding="utf-8", newline="\n") as stream:
        for start in range(0, len(open_items), args.batch):
            batch = open_items[start : start + args.batch]
            for item, text in zip(batch, answer(batch, tokenizer, model, args.max_tokens), strict=True):
                stream.write(json.dumps({"id": item["id"], "text": text}, ensure_ascii=False) + "\n")
            stream.flush()


@torch.inference_mode()
def answer(batch: list[dict[str, Any]], tokenizer: Any, model: Any, most: int) -> list[str]:
    """One greedy answer per item."""
    prompts = [
        tokenizer.apply_chat_template(item["messages"], tokenize=False, add_generation_prompt=True) for item in batch
    ]
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
    length = min(most, max(item.get("max_tokens", most) for item in batch))
    made = model.generate(**inputs, max_new_tokens=length, do_sample=False, pad_token_id=tokenizer.pad_token_id)
    return list(tokenizer.batch_decode(made[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True))


if __name__ == "__main__":
    main()
