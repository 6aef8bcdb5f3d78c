"""Makes items.jsonl of instruction: nothing in, the very same bytes out on any machine. Writes one file (two if asked).

    python evalsets/instruction/generate.py [--out DIR] [--references FILE]

Every item draws from dice named by its id, so it keeps its bytes whatever is added beside it. `--references` writes an
answer that keeps every constraint of its item, for the tests.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import crafted
import plan
import records
import short_answers
import writing
import yaml
from dice import Dice
from writing import Draft

HERE = Path(__file__).resolve().parent
LANGUAGES = ("en", "zh", "ja", "ar", "ru", "es", "th")


def load_texts(name: str) -> Any:
    """texts/<name>.yaml."""
    return yaml.safe_load((HERE / "texts" / f"{name}.yaml").read_text(encoding="utf-8"))


def drafts() -> Iterator[Draft]:
    """Every item, language by language."""
    for language in LANGUAGES:
        texts = load_texts(language)
        yield from written(language, texts)
        yield from records.drafts(language, texts)
        yield from short_answers.drafts(language, texts)
    yield from crossed()
    yield from crafted.drafts(load_texts("crafted"))


def written(language: str, texts: dict[str, Any]) -> Iterator[Draft]:
    """The writing tasks of one language."""
    for line in (plan.ALONE[language], plan.TOGETHER[language]):
        for names, times in plan.entries(line):
            kind = (
                plan.KIND_OF[names[0]] if len(names) == 1 else ("two-constraints", "three-constraints")[len(names) - 2]
            )
            for topic in Dice(f"topics/{language}/{'+'.join(names)}").several(texts["topics"], times):
                yield writing.single(language, texts, names, topic, kind)
    for entry in plan.DIALOGUES[language].split():
        turns, _, names = entry.partition(":")
        yield writing.dialogue(language, texts, tuple(names.split("+")), int(turns))
    for names, _ in plan.entries(plan.SYSTEMS[language]):
        topic = Dice(f"topics/{language}/system/{'+'.join(names)}").pick(texts["topics"])
        yield writing.system(language, texts, names, topic)


def crossed() -> Iterator[Draft]:
    """Prompts in one language for answers in another, on topics that both have."""
    for asked, line in plan.CROSSED.items():
        texts = load_texts(asked)
        shared = {topic["id"] for topic in texts["topics"]}
        for (language,), times in plan.entries(line):
            answered = load_texts(language)
            topics = [topic for topic in answered["topics"] if topic["id"] in shared]
            for topic in Dice(f"topics/{language}/asked-in-{asked}").several(topics, times):
                yield writing.crossed(texts, language, answered, topic)


def item(draft: Draft) -> dict[str, Any]:
    """A draft as qgate.schemas.evalset.Item has it."""
    return {
        "id": draft.id,
        "messages": [{"role": role, "content": content} for role, content in draft.messages],
        "kind": draft.kind,
        "language": draft.language,
        "difficulty": draft.difficulty,
        "scorer": {
            "name": "constraints",
            "args": {"checks": [{"name": name, "args": args} for name, args in draft.checks]},
        },
        "slices": draft.slices,
    }


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description="Make the items of the evaluation set `instruction`.")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for items.jsonl (default: beside this script)")
    parser.add_argument("--references", type=Path, help="also write {id: an answer that scores 1} as JSON here")
    args = parser.parse_args()
    made = list(drafts())
    lines = [json.dumps(item(draft), ensure_ascii=False, sort_keys=True) + "\n" for draft in made]
    (args.out / "items.jsonl").write_bytes("".join(lines).encode())
    if args.references is not None:
        references = {draft.id: draft.reference for draft in made}
        args.references.write_text(json.dumps(references, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
