"""The kinds of long-text items: an order (language, kind, length) in, a prompt with its scorer and answer out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dice import Dice
from documents import Planted, Texts, code, codes, evenly, filler, log, register

LENGTHS = {"1k": 1024, "2k": 2048, "4k": 4096, "8k": 8192, "16k": 16384, "32k": 32768}
SPREAD = "spread"
UNSPACED = ("zh", "ja", "th")


@dataclass(frozen=True)
class Order:
    """What is wanted: `room` is the number of characters for document and question together, `rank` the length's (0…5)."""

    dice: Dice
    texts: Texts
    language: str
    rank: int
    room: int
    depth: int
    """Place of a single needle, in percent of the document."""


@dataclass(frozen=True)
class Made:
    """A finished item's parts, and an answer that scores 1."""

    prompt: str
    scorer: str
    args: dict[str, Any]
    reference: str
    depth: str = SPREAD


def _with_log(order: Order, planted: Sequence[Planted], ask: str) -> str:
    return f"{log(order.dice, order.texts, order.room - len(ask), planted)}\n\n{ask}"


def one_needle(order: Order) -> Made:
    """One code, once."""
    told, safe, value = order.texts["one-needle"], order.dice.pick(order.texts["safes"]), code(order.dice)
    fact = Planted(order.depth / 100, told["fact"].format(safe=safe, code=value))
    prompt = _with_log(order, [fact], told["ask"].format(safe=safe))
    return Made(prompt, "contains_all", {"values": [value]}, value, str(order.depth))


def several_needles(order: Order) -> Made:
    """Three to six codes, spread over the document."""
    told, num = order.texts["several-needles"], (3, 3, 4, 4, 5, 6)[order.rank]
    values = codes(order.dice, num)
    facts = zip(evenly(num, order.dice), order.dice.several(order.texts["safes"], num), values, strict=True)
    planted = [Planted(at, told["fact"].format(safe=safe, code=value)) for at, safe, value in facts]
    prompt = _with_log(order, planted, told["ask"].format(num=num))
    return Made(prompt, "contains_all", {"values": values}, "\n".join(values))


def key_value(order: Order) -> Made:
    """One line of a register; the lines beside it are wrong answers."""
    told = order.texts["key-value"]
    shelves = register(order.dice, told, order.room - len(told["ask"]))
    at = min(max(1, round(order.depth / 100 * len(shelves.keys))), len(shelves.keys) - 2)
    value, beside = shelves.codes[at], [shelves.codes[at - 1], shelves.codes[at + 1]]
    prompt = f"{shelves.text}\n\n{told['ask'].format(key=shelves.keys[at])}"
    return Made(prompt, "contains_all", {"values": [value], "none_of": beside}, value, str(order.depth))


def ordering(order: Order) -> Made:
    """Visitors, to be listed in the order they came."""
    told, num = order.texts["ordering"], (4, 4, 5, 5, 6, 6)[order.rank]
    came = order.dice.several(order.texts["visitors"], num)
    if came == sorted(came):
        came.reverse()
    places = evenly(num, order.dice)
    planted = [Planted(at, told["fact"].format(visitor=who)) for at, who in zip(places, came, strict=True)]
    listed = told["separator"].join(sorted(came))
    prompt = _with_log(order, planted, told["ask"].format(visitors=listed))
    return Made(prompt, "ordered", {"values": came}, told["separator"].join(came))


def counting(order: Order) -> Made:
    """How often the same sentence stands in the document, among its like."""
    told, num = order.texts["counting"], order.dice.between(3 + 2 * order.rank, 5 + 2 * order.rank)
    decoys = order.dice.between(2, 3 + order.rank)
    planted = [Planted(at, told["fact"]) for at in evenly(num, order.dice)]
    planted += [Planted(at, told["decoy"]) for at in evenly(decoys, order.dice)]
    return Made(_with_log(order, planted, told["ask"]), "number", {"value": num}, str(num))


def contradiction(order: Order) -> Made:
    """Every safe is weighed twice; one of them differs."""
    told, num = order.texts["contradiction"], (3, 3, 4, 4, 5, 6)[order.rank]
    safes = order.dice.several(order.texts["safes"], num)
    weights = order.dice.several(range(120, 480), num + 1)
    first = list(zip(safes, weights, strict=False))
    second = order.dice.shuffled([(safes[0], weights[num]), *first[1:]])
    told_twice = [*order.dice.shuffled(first), *second]
    planted = [
        Planted(at, told["fact"].format(safe=safe, n=weight))
        for at, (safe, weight) in zip(evenly(2 * num, order.dice), told_twice, strict=True)
    ]
    prompt = _with_log(order, planted, told["ask"])
    return Made(prompt, "contains_all", {"values": [safes[0]], "none_of": safes[1:]}, safes[0])


def summary(order: Order) -> Made:
    """Decisions that the summary must hold, and rumours that it must not."""
    told = order.texts["summary"]
    heads, ships = order.dice.several(order.texts["heads"], 2), order.dice.several(order.texts["ships"], 2)
    slots = dict(zip(("n", "n2", "n3"), order.dice.several(range(41, 99), 3), strict=True))
    slots |= {"head": heads[0], "head2": heads[1], "ship": ships[0], "ship2": ships[1]}
    facts = told["facts"][: 3 if order.rank == 0 else None]
    values = [str(slots[key]) for fact in facts for key in slots if f"{{{key}}}" in fact]
    sentences = order.dice.shuffled([*facts, *told["rumours"]])
    places = evenly(len(sentences), order.dice)
    planted = [Planted(at, text.format(**slots)) for at, text in zip(places, sentences, strict=True)]
    prompt = _with_log(order, planted, told["ask"])
    reference = order.texts["join"].join(fact.format(**slots) for fact in facts)
    return Made(prompt, "contains_all", {"values": values, "none_of": [heads[1], ships[1]]}, reference)


def tracking(order: Order) -> Made:
    """Keys that change hands; the last change takes the one asked for to somebody who did not have it at first."""
    told, num, swaps = order.texts["tracking"], (3, 3, 4, 4, 5, 5)[order.rank], (2, 3, 4, 5, 6, 8)[order.rank]
    safes, people = order.dice.several(order.texts["safes"], num), order.dice.several(order.texts["names"], num)
    target, holders = safes[0], dict(zip(safes, people, strict=True))
    lines = [told["start"].format(safe=safe, name=name) for safe, name in holders.items()]
    for swap in range(swaps):
        if swap + 1 == swaps:
            one, two = target, order.dice.pick([safe for safe in safes[1:] if holders[safe] != people[0]])
        else:
            one, two = order.dice.several(safes, 2)
        lines.append(told["swap"].format(name=holders[one], name2=holders[two]))
        holders[one], holders[two] = holders[two], holders[one]
    planted = [Planted(at, line) for at, line in zip(evenly(len(lines), order.dice), lines, strict=True)]
    wrong = [name for name in people if name != holders[target]]
    prompt = _with_log(order, planted, told["ask"].format(safe=target))
    return Made(prompt, "contains_all", {"values": [holders[target]], "none_of": wrong}, holders[target])


def prose(order: Order, kind: str, length: int) -> Made:
    """A story or a manual of `length` words (characters in Chinese, Japanese, Thai) with two names in it."""
    told = order.texts[kind]
    name, name2 = order.dice.several(order.texts["names"], 2)
    subject = order.dice.pick(told["subjects"])
    prompt = told["ask"].format(num=length, subject=subject, name=name, name2=name2)
    written, size = [name, name2], 0
    for sentence in filler(order.dice, order.texts):
        written.append(sentence)
        size += len(sentence) if order.language in UNSPACED else len(sentence.split())
        if size > 2 * length:
            break
    args = {"length": length, "values": [name, name2]}
    return Made(prompt, "free_text", args, " ".join(written))


def plan(order: Order, num: int) -> Made:
    """A list of `num` numbered steps."""
    told = order.texts["plan"]
    prompt = told["ask"].format(num=num, subject=order.dice.pick(told["subjects"]))
    steps = filler(order.dice, order.texts)
    reference = "\n".join(f"{number}. {next(steps)}" for number in range(1, num + 1))
    return Made(prompt, "enumeration", {"count": num}, reference)


READING: dict[str, Callable[[Order], Made]] = {
    "one-needle": one_needle,
    "several-needles": several_needles,
    "key-value": key_value,
    "ordering": ordering,
    "counting": counting,
    "contradiction": contradiction,
    "summary": summary,
    "tracking": tracking,
}
"""Kinds with a long prompt and a short answer."""
