"""Makes items.jsonl of noisy-text: nothing in, the very same bytes out on any machine. Writes one file (two if asked).

    python evalsets/noisy-text/generate.py [--out DIR] [--references FILE]

Every family (a clean question and its three noised twins) draws from dice named by its id, so a family keeps its bytes
whatever is added beside it. `--references` writes an answer that scores 1 for every id, for the tests.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import noise_chars
import noise_text
from dice import Dice
from prompt import Prompt
from questions import TASKS, Scored, question, short_question

HERE = Path(__file__).resolve().parent
SEED = "noisy-text"
OTHER_LANGUAGE = {"en": ("zh", "es", "ru", "ja"), "zh": ("en", "ja"), "es": ("en",), "ja": ("en",), "ar": ("en",)} | {
    "ru": ("en",),
    "th": ("en",),
}
"""Which languages are mixed in; the first family takes the first, and so on."""

LATIN_NOISE = (
    *("typo", "ocr", "letters", "spacing", "case", "homoglyph", "fullwidth", "mojibake"),
    *("markup", "log", "emoji", "code-switch", "speech", "truncation", "control"),
)
CHINESE_NOISE = tuple(noise for noise in LATIN_NOISE if noise != "case")
MORE_IN_ENGLISH = (
    *("typo", "letters", "spacing", "homoglyph", "mojibake"),
    *("markup", "log", "speech", "truncation", "control"),
)
NUM_FAMILIES = {
    "en": dict.fromkeys(LATIN_NOISE, 4) | dict.fromkeys(MORE_IN_ENGLISH, 5),
    "zh": dict.fromkeys(CHINESE_NOISE, 2) | dict.fromkeys(("typo", "markup", "log", "speech"), 3),
    "es": dict.fromkeys(("typo", "ocr", "case", "mojibake", "fullwidth", "speech"), 1),
    "ru": dict.fromkeys(("typo", "homoglyph", "letters", "spacing", "case", "truncation"), 1),
    "ja": dict.fromkeys(("typo", "ocr", "emoji", "homoglyph", "control", "code-switch"), 1),
    "ar": dict.fromkeys(("letters", "ocr", "markup", "mojibake", "control", "code-switch"), 1),
    "th": dict.fromkeys(("typo", "letters", "spacing", "log", "truncation", "emoji"), 1),
}
"""Language to noise to number of families; every language also has one family per very short prompt."""

CHAR_NOISE = {
    name: getattr(noise_chars, name)
    for name in ("typo", "ocr", "letters", "spacing", "case", "homoglyph", "fullwidth", "control")
}
TEXT_NOISE = {name: getattr(noise_text, name) for name in ("mojibake", "markup", "log", "emoji", "truncation")}
SHORT_NOISE = ("typo", "letters", "spacing", "case", "homoglyph", "control", "fullwidth")
SHORT_MISSING = {
    "zh": {"case"},
    "ja": {"case"},
    "ru": set[str](),
    "ar": {"case", "homoglyph"},
    "th": {"case", "homoglyph"},
}


@dataclass(frozen=True)
class Family:
    """A clean question and what is needed to write its twins."""

    id: str
    noise: str
    task: str
    difficulty: int
    prompt: Prompt
    scored: Scored


def load_texts() -> dict[str, dict[str, Any]]:
    """Language to its texts."""
    return {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("texts/*.toml"))}


def families(texts: dict[str, dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Every item as it is written, with its reference answer."""
    for language, noises in NUM_FAMILIES.items():
        tasks = [task for task in TASKS if task in texts[language]["tasks"]]
        for column, (noise, num) in enumerate(noises.items()):
            for row in range(num):
                yield from _family(texts, language, noise, row, tasks[(column + row * 3 + row // 4) % len(tasks)])
        for row, told in enumerate(texts[language]["short"]):
            yield from _short_family(language, told, row)


def _family(
    texts: dict[str, dict[str, Any]], language: str, noise: str, row: int, task: str
) -> Iterator[tuple[dict[str, Any], str]]:
    family = f"{language}-{noise}-{row + 1:02d}"
    dice = Dice(f"{SEED}/{family}")
    other = texts[OTHER_LANGUAGE[language][row % len(OTHER_LANGUAGE[language])]]
    if noise == "code-switch":
        task = _task_in_both(texts[language], other, task)
    slots = TASKS[task].draw(dice, texts[language])
    intro = dice.pick(texts[language]["intros"])
    if TASKS[task].difficulty == 1 and noise != "mojibake":
        intro = ""
    prompt = question(language, texts[language], task, slots, intro)

    def noised(severity: int, dice: Dice) -> str:
        if noise == "speech":
            return noise_text.speech(prompt, severity, dice, texts[language]["fillers"], texts[language]["corrections"])
        if noise == "code-switch":
            translated = question(language, other, task, slots, other["intros"][row])
            return noise_text.code_switch(prompt, severity, translated)
        return (CHAR_NOISE | TEXT_NOISE)[noise](prompt, severity, dice)

    scored = TASKS[task].answer(slots)
    yield from _twins(Family(family, noise, task, TASKS[task].difficulty, prompt, scored), noised)


def _task_in_both(texts: dict[str, Any], other: dict[str, Any], task: str) -> str:
    """`task`, or the next one whose answer reads the same in both languages."""
    order = list(TASKS)[list(TASKS).index(task) :] + list(TASKS)
    neutral = {"code", "list", "sum", "boxes", "time", "stock"} & set(texts["tasks"]) & set(other["tasks"])
    return next(name for name in order if name in neutral)


def _short_family(language: str, told: dict[str, Any], row: int) -> Iterator[tuple[dict[str, Any], str]]:
    family = f"{language}-short-{row + 1:02d}"
    prompt, scored = short_question(language, told, Dice(f"{SEED}/{family}"))
    noises = [noise for noise in SHORT_NOISE if noise not in SHORT_MISSING.get(language, set())]

    def noised(severity: int, dice: Dice) -> str:
        return CHAR_NOISE[dice.pick(noises)](prompt, severity, dice)

    task = f"short-{told['answer'].replace('_', '-')}"
    yield from _twins(Family(family, "short", task, told["difficulty"], prompt, scored), noised)


def _twins(family: Family, noised: Callable[[int, Dice], str]) -> Iterator[tuple[dict[str, Any], str]]:
    """The clean item and three twins, each of which differs from all before it."""
    texts = [family.prompt.text()]
    for severity in (1, 2, 3):
        drawn = (noised(severity, Dice(f"{SEED}/{family.id}-s{severity}/{attempt}")) for attempt in range(100))
        texts.append(next(text for text in drawn if text not in texts))
    for severity, text in enumerate(texts):
        noise = family.noise if severity else "none"
        item = {
            "id": f"{family.id}-s{severity}",
            "messages": [{"role": "user", "content": text}],
            "kind": family.noise if severity else "clean",
            "language": family.prompt.language,
            "difficulty": family.difficulty,
            "scorer": {"name": family.scored.name, "args": family.scored.args},
            "slices": {"task": family.task, "family": family.noise, "noise": noise, "severity": str(severity)},
        }
        yield item | ({"twin_of": f"{family.id}-s0"} if severity else {}), family.scored.reference


def main() -> None:
    """Write the items, and the reference answers where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE, help="folder for items.jsonl (default: beside this script)")
    parser.add_argument("--references", type=Path, help="also write {id: an answer that scores 1} as JSON here")
    args = parser.parse_args()
    made = list(families(load_texts()))
    lines = [json.dumps(item, ensure_ascii=False, sort_keys=True) for item, _ in made]
    (args.out / "items.jsonl").write_bytes(("\n".join(lines) + "\n").encode())
    if args.references is not None:
        references = {item["id"]: reference for item, reference in made}
        args.references.write_text(json.dumps(references, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
