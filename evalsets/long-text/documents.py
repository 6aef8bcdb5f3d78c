"""Long fictional documents of a wanted length: texts, dice and planted sentences in, a document out. Pure.

A log is written sentence by sentence from the templates of its language; the planted sentences stand at the shares of
its length that are asked for. A register is one line per shelf. Lengths are set in characters, since no tokenizer is at
hand here; tokens.csv has what they come to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dice import Dice

Texts = dict[str, Any]
"""One texts/<language>.toml."""

SENTENCES_PER_ENTRY = 6
FEWEST_SENTENCES = 6
CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


@dataclass(frozen=True)
class Planted:
    """A sentence that an answer hangs on, and where it stands: 0 is the start of the document, 1 the end."""

    at: float
    sentence: str


def code(dice: Dice) -> str:
    """A made-up code such as `KV-482`."""
    return f"{dice.pick(CODE_LETTERS)}{dice.pick(CODE_LETTERS)}-{dice.between(100, 999)}"


def codes(dice: Dice, num: int) -> list[str]:
    """`num` different codes."""
    found: dict[str, None] = {}
    while len(found) < num:
        found[code(dice)] = None
    return list(found)


def evenly(num: int, dice: Dice) -> list[float]:
    """`num` places, one in each of `num` equal parts of the document."""
    return [(part + 0.15 + 0.7 * dice.between(0, 99) / 99) / num for part in range(num)]


def filler(dice: Dice, texts: Texts) -> Iterator[str]:
    """Everyday sentences without end; no sentence comes twice, and no template before all others were used."""
    seen: set[str] = set()
    while True:
        for template in dice.shuffled(texts["filler"]):
            name, name2 = dice.several(texts["names"], 2)
            sentence = template.format(
                name=name,
                name2=name2,
                place=dice.pick(texts["places"]),
                thing=dice.pick(texts["things"]),
                n=dice.between(4, 40),
                time=f"{dice.between(6, 22)}:{dice.between(0, 59):02d}",
            )
            if sentence not in seen:
                seen.add(sentence)
                yield sentence


def log(dice: Dice, texts: Texts, num_chars: int, planted: Sequence[Planted]) -> str:
    """A logbook of about `num_chars` characters with the planted sentences in it."""
    join = texts["join"]
    left = num_chars - sum(len(plant.sentence) + len(join) for plant in planted)
    sentences: list[str] = []
    for sentence in filler(dice, texts):
        header = len(texts["entry"]) / SENTENCES_PER_ENTRY
        if left < len(sentence) and len(sentences) >= FEWEST_SENTENCES:
            break
        sentences.append(sentence)
        left -= len(sentence) + len(join) + header
    sentences = _with_planted(sentences, planted)
    entries = [sentences[at : at + SENTENCES_PER_ENTRY] for at in range(0, len(sentences), SENTENCES_PER_ENTRY)]
    lines = [join.join([texts["entry"].format(n=number), *entry]) for number, entry in enumerate(entries, start=1)]
    return "\n".join([dice.pick(texts["titles"]), "", *lines])


def _with_planted(sentences: list[str], planted: Sequence[Planted]) -> list[str]:
    """The sentences with each planted one at the boundary that is nearest to its place, counted in characters."""
    total, passed = sum(map(len, sentences)), 0
    waiting = sorted(planted, key=lambda plant: plant.at)
    mixed: list[str] = []
    for sentence in sentences:
        while waiting and waiting[0].at * total <= passed + len(sentence) / 2:
            mixed.append(waiting.pop(0).sentence)
        mixed.append(sentence)
        passed += len(sentence)
    return mixed + [plant.sentence for plant in waiting]


@dataclass(frozen=True)
class Register:
    """Shelves and their codes, in order."""

    text: str
    keys: tuple[int, ...]
    codes: tuple[str, ...]


def register(dice: Dice, told: dict[str, Any], num_chars: int) -> Register:
    """A register of about `num_chars` characters."""
    num_lines = max(12, (num_chars - len(told["title"])) // (len(told["line"].format(key=1000, code="KV-482")) + 1))
    keys, key = [], dice.between(100, 160)
    for _ in range(num_lines):
        keys.append(key)
        key += dice.between(1, 3)
    values = codes(dice, num_lines)
    lines = [told["line"].format(key=key, code=value) for key, value in zip(keys, values, strict=True)]
    return Register("\n".join([told["title"], "", *lines]), tuple(keys), tuple(values))
