"""Questions with a known answer, in any language that has texts for them: dice in, a Prompt and its answer out. Pure.

A task's draw fills the slots that its texts in texts/<language>.toml name; the answer is computed from the slots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dice import Dice
from prompt import Prompt

Texts = dict[str, Any]
"""One texts/<language>.toml: names, things, places, colours, intros, tasks, …"""

CONSONANTS, VOWELS, CODE_LETTERS = "bdfgklmnprstv", "aeiou", "BCDFGHJKLMNPQRSTVWXZ"


@dataclass(frozen=True)
class Scored:
    """A scorer, its arguments, and an answer that scores 1."""

    name: str
    args: dict[str, Any]
    reference: str
    keep: tuple[str, ...]
    """Strings of the prompt that no noise may alter."""


@dataclass(frozen=True)
class Task:
    """A kind of question: `draw` fills slots, `answer` reads the solution off them."""

    difficulty: int
    draw: Callable[[Dice, Texts], dict[str, Any]]
    answer: Callable[[dict[str, Any]], Scored]


def word(answer: str, *others: str) -> Scored:
    """The answer is a word of the prompt; naming one of `others` is wrong."""
    args: dict[str, Any] = {"values": [_stem(answer)]}
    if others:
        args["none_of"] = [_stem(other) for other in others]
    return Scored("contains_all", args, answer, (answer, *others))


def _stem(answer: str) -> str:
    """A colour without the word for colour, which an answer may leave out: 绿 of 绿色, เขียว of สีเขียว."""
    return answer.removeprefix("สี").removesuffix("色")


def number(value: int) -> Scored:
    """The answer is a number; digits are never altered by noise."""
    return Scored("number", {"value": value}, str(value), ())


def _names(dice: Dice, texts: Texts, num: int) -> dict[str, Any]:
    keys = ["name", *(f"name{at}" for at in range(2, num + 1))]
    return dict(zip(keys, dice.several(texts["names"], num), strict=True))


def _thing(dice: Dice, texts: Texts) -> dict[str, Any]:
    things, places = dice.several(texts["things"], 2), dice.several(texts["places"], 2)
    colours = dice.several(texts["colours"], 2)
    return {
        **_names(dice, texts, 2),
        **{"thing": things[0], "thing2": things[1], "place": places[0], "place2": places[1]},
        **{"colour": colours[0], "colour2": colours[1], "code": code(dice)},
    }


def code(dice: Dice) -> str:
    """A made-up code such as `KV-482`."""
    return f"{dice.pick(CODE_LETTERS)}{dice.pick(CODE_LETTERS)}-{dice.between(100, 999)}"


def made_up_word(dice: Dice) -> str:
    """A made-up word of two syllables, such as `belmor`."""
    parts = (CONSONANTS, VOWELS, CONSONANTS, CONSONANTS, VOWELS, CONSONANTS)
    return "".join(dice.pick(part) for part in parts)


def _list(dice: Dice, texts: Texts) -> dict[str, Any]:
    slots = _names(dice, texts, 5)
    values = dice.several(range(12, 98), 5)
    slots.update(zip(("n", "n2", "n3", "n4", "n5"), values, strict=True))
    at = dice.between(0, 4)
    return slots | {"asked": slots["name" if at == 0 else f"name{at + 1}"], "solution": values[at]}


def _unsaid(draw: Callable[[Dice, Texts], dict[str, Any]]) -> Callable[[Dice, Texts], dict[str, Any]]:
    """`draw`, until the solution is none of the numbers that the prompt says."""

    def again(dice: Dice, texts: Texts) -> dict[str, Any]:
        slots = draw(dice, texts)
        while slots["solution"] in [value for key, value in slots.items() if key != "solution"]:
            slots = draw(dice, texts)
        return slots

    return again


@_unsaid
def _sum(dice: Dice, texts: Texts) -> dict[str, Any]:
    values = [dice.between(5, 40) for _ in range(3)]
    return _names(dice, texts, 2) | {"n": values[0], "n2": values[1], "n3": values[2], "solution": sum(values)}


@_unsaid
def _boxes(dice: Dice, texts: Texts) -> dict[str, Any]:
    n, n2, n3 = dice.between(4, 12), dice.between(6, 24), dice.between(3, 19)
    return {"n": n, "n2": n2, "n3": n3, "solution": n * n2 - n3}


def _time(dice: Dice, texts: Texts) -> dict[str, Any]:
    start, minutes = dice.between(8, 19) * 60 + dice.between(21, 58), dice.between(43, 95)
    end = start + minutes
    return {
        "start": f"{start // 60}:{start % 60:02d}" if start >= 600 else f"0{start // 60}:{start % 60:02d}",
        "minutes": minutes,
        "solution": f"{end // 60:02d}:{end % 60:02d}",
    }


def _time_answer(slots: dict[str, Any]) -> Scored:
    hours, minutes = slots["solution"].split(":")
    spellings = [slots["solution"], f"{hours}点{minutes}分", f"{hours}時{minutes}分"]
    return Scored("contains_all", {"values": [spellings]}, slots["solution"], (slots["start"],))


@_unsaid
def _stock(dice: Dice, texts: Texts) -> dict[str, Any]:
    n, n2, n3, n4 = dice.between(31, 79), dice.between(7, 29), dice.between(11, 48), dice.between(9, 33)
    return _names(dice, texts, 3) | {"n": n, "n2": n2, "n3": n3, "n4": n4, "solution": 2 * (n - n2 + n3) - n4}


def _queue(dice: Dice, texts: Texts) -> dict[str, Any]:
    slots = _names(dice, texts, 5)
    at = dice.between(2, 4)
    return slots | {"place_number": at, "solution": slots[f"name{at}"]}


def _queue_answer(slots: dict[str, Any]) -> Scored:
    others = [slots[key] for key in ("name", "name2", "name3", "name4", "name5") if slots[key] != slots["solution"]]
    return word(slots["solution"], *others)


def _rule(dice: Dice, texts: Texts) -> dict[str, Any]:
    total = dice.between(11, 16)
    lomic = [value for value in range(100, 999) if sum(map(int, str(value))) == total]
    near = [value for value in range(100, 999) if abs(sum(map(int, str(value))) - total) in {1, 2}]
    solution, decoys = dice.pick(lomic), dice.several(near, 5)
    options = dice.shuffled([solution, *decoys[:4]]) + decoys[4:]
    return {"total": total, "solution": solution, "options": ", ".join(map(str, options))}


TASKS = {
    "colour": Task(1, _thing, lambda slots: word(slots["colour"])),
    "code": Task(1, _thing, lambda slots: word(slots["code"])),
    "two": Task(2, _thing, lambda slots: word(slots["colour"], slots["colour2"])),
    "choice": Task(2, _thing, lambda slots: word(slots["place"], slots["place2"])),
    "list": Task(3, _list, lambda slots: number(slots["solution"])),
    "sum": Task(3, _sum, lambda slots: number(slots["solution"])),
    "compare": Task(3, lambda dice, texts: _names(dice, texts, 3), lambda s: word(s["name3"], s["name"], s["name2"])),
    "boxes": Task(4, _boxes, lambda slots: number(slots["solution"])),
    "time": Task(4, _time, _time_answer),
    "queue": Task(4, _queue, _queue_answer),
    "stock": Task(5, _stock, lambda slots: number(slots["solution"])),
    "rule": Task(5, _rule, lambda slots: number(slots["solution"])),
}


def question(language: str, texts: Texts, task: str, slots: dict[str, Any], intro: str) -> Prompt:
    """The prompt of `task` in `language` with its slots filled."""
    told = texts["tasks"][task]
    return Prompt(
        language=language,
        join=texts["join"],
        intro=intro,
        facts=tuple(fact.format(**slots) for fact in told["facts"]),
        question=told["question"].format(**slots),
        instruction=told["instruction"],
        keep=TASKS[task].answer(slots).keep,
    )


def short_question(language: str, told: dict[str, Any], dice: Dice) -> tuple[Prompt, Scored]:
    """A prompt of a few tokens, and its answer."""
    n, n2, n3 = dice.several(range(11, 60), 3)
    if told["answer"] == "product":
        n, n3 = dice.between(11, 19), dice.between(3, 9)
    slots = {"n": n, "n2": n2, "n3": n3, "word": made_up_word(dice), "word2": made_up_word(dice), "code": code(dice)}
    scored = {
        "sum": number(n + n2),
        "product": number(n * n3),
        "max": number(max(n, n2)),
        "min": number(min(n, n2, n3)),
        "first_number": number(n),
        "word": word(slots["word"]),
        "first": word(slots["word"], slots["word2"]),
        "backwards": Scored("contains_all", {"values": [slots["word"][::-1]]}, slots["word"][::-1], (slots["word"],)),
        "code": word(slots["code"]),
    }[told["answer"]]
    return Prompt(language, "", "", (), told["prompt"].format(**slots), "", scored.keep), scored
