"""Questions whose answer is one word, number or sentence, to which nothing may be added. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dice import Dice
from records import facts, ferries
from scene import UNSPACED
from writing import Draft

Made = tuple[dict[str, str], str]
"""What fills the wording, and the one right answer."""

TASKS = {
    "en": "copy:4 yes-no:3 time:3 sum:2 most:2 last-word:2 count:1 reverse:2",
    "zh": "copy:2 yes-no:1 time:1 sum:1 most:1 nth:1 count:1 reverse:1",
} | dict.fromkeys(("ja", "ar", "ru", "es", "th"), "copy:1 time:1")
"""Language to tasks, with the number of items each."""

LEVEL = {"copy": 1, "yes-no": 1, "time": 2, "sum": 2, "most": 3, "last-word": 2, "nth": 3, "count": 4, "reverse": 4}


def drafts(language: str, texts: dict[str, Any]) -> Iterator[Draft]:
    """The items of one language."""
    for entry in TASKS[language].split():
        task, _, times = entry.partition(":")
        for number in range(1, int(times) + 1):
            item = f"{language}-only-{task}-{number}"
            filling, answer = MAKERS[task](language, texts, Dice(f"instruction/{item}"))
            prompt = texts["short"][task].format(**filling)
            if task in {"copy", "reverse"}:
                check = ("combination:repeat_prompt", {"prompt_to_repeat": answer, "only": True})
            else:
                check = ("detectable_format:constrained_response", {"options": [answer]})
            slices = {"constraints": "1"}
            yield Draft(item, "answer-only", language, LEVEL[task], (("user", prompt),), [check], answer, slices)


def _sentence(texts: dict[str, Any], dice: Dice) -> str:
    sentence: str = dice.pick(dice.pick(texts["topics"])["sentences"])
    return sentence


def _copy(language: str, texts: dict[str, Any], dice: Dice) -> Made:
    sentence = _sentence(texts, dice)
    return {"sentence": sentence}, sentence


def _yes_no(language: str, texts: dict[str, Any], dice: Dice) -> Made:
    low, high = sorted(dice.several(range(11, 99), 2))
    yes, no = texts["short"]["answers"]
    if dice.chance(0.5):
        return {"a": str(high), "b": str(low)}, yes
    return {"a": str(low), "b": str(high)}, no


def _time(language: str, texts: dict[str, Any], dice: Dice) -> Made:
    fleet = ferries(texts["records"], dice, 2)
    asked = dice.pick(fleet)
    return {"facts": facts(texts["records"], fleet), "name": asked.name}, asked.time


def _most(language: str, texts: dict[str, Any], dice: Dice) -> Made:
    fleet = ferries(texts["records"], dice, 3)
    return {"facts": facts(texts["records"], fleet)}, max(fleet, key=lambda ferry: ferry.seats).name


def _sum(language: str, texts: dict[str, Any], dice: Dice) -> Made:
    one, other = dice.between(11, 58), dice.between(11, 39)
    return {"a": str(one), "b": str(other)}, str(one + other)


def _last_word(language: str, texts: dict[str, Any], dice: Dice) -> Made:
    sentence = _sentence(texts, dice)
    return {"sentence": sentence}, sentence.rstrip(".").split()[-1]


def _nth(language: str, texts: dict[str, Any], dice: Dice) -> Made:
    sentence = _sentence(texts, dice)
    nth = dice.between(3, 6)
    return {"sentence": sentence, "n": str(nth)}, sentence[nth - 1]


def _count(language: str, texts: dict[str, Any], dice: Dice) -> Made:
    sentence = _sentence(texts, dice)
    num = sum(ch.isalnum() for ch in sentence) if language in UNSPACED else len(sentence.split())
    return {"sentence": sentence}, str(num)


def _reverse(language: str, texts: dict[str, Any], dice: Dice) -> Made:
    words = dice.several([word for topic in texts["topics"] for word in topic["keywords"]], 5)
    words = list(dict.fromkeys(words))
    return {"words": " ".join(words)}, " ".join(reversed(words))


MAKERS: dict[str, Callable[[str, dict[str, Any], Dice], Made]] = {
    "copy": _copy,
    "yes-no": _yes_no,
    "time": _time,
    "most": _most,
    "sum": _sum,
    "last-word": _last_word,
    "nth": _nth,
    "count": _count,
    "reverse": _reverse,
}
