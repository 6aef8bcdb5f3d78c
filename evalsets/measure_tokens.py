"""Length of every prompt under a model's tokenizer: set folders and a tokenizer in, a tokens.csv in each folder out.

    python evalsets/measure_tokens.py --tokenizer MODEL/tokenizer.json evalsets/long-text evalsets/noisy-text

Runs where the `tokenizers` package is, such as the environment of the transformers engine. What is counted is the text
of all messages, without a chat template.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tokenizers import Tokenizer


def main() -> None:
    """Write tokens.csv beside each items.jsonl."""
    parser = argparse.ArgumentParser(description="Prompt lengths in tokens.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="SET", help="folders with items.jsonl")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json of the model")
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(args.tokenizer))
    for folder in args.folders:
        lines = (folder / "items.jsonl").read_bytes().split(b"\n")
        items = [json.loads(line) for line in lines if line]
        texts = ["\n".join(message["content"] for message in item["messages"]) for item in items]
        counts = [len(encoded.ids) for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
        rows = [f"{item['id']},{count}\n" for item, count in zip(items, counts, strict=True)]
        (folder / "tokens.csv").write_text("id,tokens\n" + "".join(rows), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
