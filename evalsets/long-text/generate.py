"""Makes items.jsonl of long-text: nothing in, the very same bytes out on any machine. Writes one file (two if asked).

    python evalsets/long-text/generate.py [--out DIR] [--references FILE]

Every item draws from dice named by its id. `--references` writes an answer that scores 1 for every id, for the tests.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dice import Dice
from kinds import LENGTHS, READING, Made, Order, plan, prose

HERE = Path(__file__).resolve().parent
SEED = "long-text"
DEPTHS = (10, 30, 50, 70, 90)
MINOR = ("es", "ru", "ja", "ar", "th")

CHARS_PER_TOKEN = {"en": 3.95, "zh": 0.55, "es": 2.48, "ru": 1.25, "ja": 0.55, "ar": 1.05, "th": 0.54}
"""Characters per token of the logs under the SmolLM2 tokenizer, measured."""
CHARS_PER_TOKEN_REGISTER = {"en": 1.32, "zh": 0.87, "es": 1.45, "ru": 1.13, "ja": 0.84, "ar": 1.12, "th": 0.84}
"""The same of the registers."""
FILL = 0.93
"""Share of a length that prompt and answer together take: another tokenizer, or a chat template, needs some room."""
TEMPLATE_TOKENS = 60

ANSWER_TOKENS = {"ordering": 224, "several-needles": 128, "summary": 448} | {"counting": 48, "contradiction": 48}
ANSWER_TOKENS_DEFAULT = 64
ANSWER_TOKENS_SUMMARY_1K = 256

LENGTH_DIFFICULTY = (1, 2, 2, 3, 4, 4)
KIND_DIFFICULTY = {
    "key-value": 1,
    "several-needles": 1,
    "contradiction": 1,
    "summary": 1,
    "ordering": 1,
    "counting": 2,
    "tracking": 2,
}

PROSE = (
    ("en", "story", "1k", 500),
    ("en", "story", "2k", 1000),
    ("en", "story", "2k", 1000),
    ("en", "story", "4k", 2000),
    ("en", "story", "4k", 2000),
    ("en", "manual", "1k", 500),
    ("en", "manual", "2k", 1000),
    ("en", "manual", "4k", 2000),
    ("en", "manual", "4k", 2000),
    ("zh", "story", "1k", 400),
    ("zh", "story", "4k", 1800),
    ("zh", "manual", "2k", 800),
    ("zh", "manual", "4k", 1800),
    ("es", "story", "2k", 600),
    ("ja", "story", "2k", 800),
    ("th", "story", "2k", 800),
)
"""Language, kind, room for the answer, words (characters where words are not spaced) wanted."""

PLANS = (
    ("en", "1k", 20),
    ("en", "1k", 30),
    ("en", "2k", 40),
    ("en", "2k", 60),
    ("en", "4k", 60),
    ("en", "4k", 100),
    ("zh", "2k", 30),
    ("zh", "4k", 60),
    ("ru", "2k", 30),
    ("ar", "2k", 30),
)
"""Language, room for the answer, steps wanted."""

OUTPUT_DIFFICULTY = {"1k": 2, "2k": 3, "4k": 4}
LONGEST_PLAN_DIFFICULTY = 5


@dataclass(frozen=True)
class Head:
    """What an item is before it has a prompt."""

    id: str
    kind: str
    language: str
    difficulty: int
    max_tokens: int


def reading_orders() -> Iterator[tuple[str, str, str, int]]:
    """Language, kind, length and number of every item with a long prompt."""
    for length in LENGTHS:
        copies = {"1k": 2, "2k": 2, "4k": 2, "8k": 2}.get(length, 1)
        yield from (("en", kind, length, copy + 1) for copy in range(copies) for kind in READING)
    for length in LENGTHS:
        kinds = list(READING) if length != "32k" else ["one-needle", "key-value", "several-needles"]
        yield from (("zh", kind, length, 1) for kind in kinds)
    yield from (("en", "one-needle", "1k", number) for number in range(3, 8))
    yield "zh", "one-needle", "1k", 2
    shorter = list(LENGTHS)[:4]
    for row, language in enumerate(MINOR):
        for column, kind in enumerate(READING):
            length = shorter[(row + column) % len(shorter)]
            yield language, kind, "2k" if kind == "summary" and length == "1k" else length, 1
        yield language, "one-needle", "1k", 2


def reading_items(texts: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Items with a long prompt and a short answer."""
    placed: Counter[str] = Counter()
    for language, kind, length, number in reading_orders():
        rank = list(LENGTHS).index(length)
        answer = ANSWER_TOKENS.get(kind, ANSWER_TOKENS_DEFAULT)
        if (kind, length) == ("summary", "1k"):
            answer = ANSWER_TOKENS_SUMMARY_1K
        ratio = (CHARS_PER_TOKEN_REGISTER if kind == "key-value" else CHARS_PER_TOKEN)[language]
        item_id = f"{language}-{kind}-{length}-{number}"
        order = Order(
            dice=Dice(f"{SEED}/{item_id}"),
            texts=texts[language],
            language=language,
            rank=rank,
            room=int(ratio * (FILL * LENGTHS[length] - answer - TEMPLATE_TOKENS)),
            depth=DEPTHS[placed[kind] % len(DEPTHS)],
        )
        placed[kind] += 1
        made = READING[kind](order)
        slices = {"length": length, "output": "short", "depth": made.depth}
        difficulty = min(5, LENGTH_DIFFICULTY[rank] + KIND_DIFFICULTY.get(kind, 0))
        yield _item(Head(item_id, kind, language, difficulty, answer), made, slices), made.reference


def writing_items(texts: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Items with a short prompt and a long answer."""
    numbers: Counter[str] = Counter()
    orders = [*PROSE, *((language, "plan", room, num) for language, room, num in PLANS)]
    for language, kind, room, size in orders:
        stem = f"{language}-{kind}-out{room}"
        numbers[stem] += 1
        item_id = f"{stem}-{numbers[stem]}"
        order = Order(Dice(f"{SEED}/{item_id}"), texts[language], language, 0, 0, 0)
        made = plan(order, size) if kind == "plan" else prose(order, kind, size)
        slices = {"length": "short", "output": room, "depth": "none"}
        difficulty = LONGEST_PLAN_DIFFICULTY if size == 100 else OUTPUT_DIFFICULTY[room]
        yield _item(Head(item_id, kind, language, difficulty, LENGTHS[room]), made, slices), made.reference


def _item(head: Head, made: Made, slices: dict[str, str]) -> dict[str, Any]:
    return {
        "id": head.id,
        "messages": [{"role": "user", "content": made.prompt}],
        "kind": head.kind,
        "language": head.language,
        "difficulty": head.difficulty,
        "scorer": {"name": made.scorer, "args": made.args},
        "slices": slices,
        "max_tokens": head.max_tokens,
    }


def main() -> None:
    """Write the items, and the reference answers where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE, help="folder for items.jsonl (default: beside this script)")
    parser.add_argument("--references", type=Path, help="also write {id: an answer that scores 1} as JSON here")
    args = parser.parse_args()
    texts = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("texts/*.toml"))}
    made = [*reading_items(texts), *writing_items(texts)]
    lines = [json.dumps(item, ensure_ascii=False, sort_keys=True) for item, _ in made]
    (args.out / "items.jsonl").write_bytes(("\n".join(lines) + "\n").encode())
    if args.references is not None:
        references = {item["id"]: reference for item, reference in made}
        args.references.write_text(json.dumps(references, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
