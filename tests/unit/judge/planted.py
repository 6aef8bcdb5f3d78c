"""Requests with a planted trigger, and a model that fails where it is read, for tests of the minimiser."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from qgate.schemas.base import content_key
from qgate.schemas.minimised import Body

FILLER = str.split(
    "the of and to in that for it as was with be by on not he his but at are this have from or had an they which one "
    "you were all her she there would their we him been has when who will no more if out so up said what its about"
)
TRIGGER = str.split("ledger amber violin quarry sixteen copper lantern meadow orbit thimble walrus zenith")


def prose(rng: random.Random, num_words: int, trigger: Sequence[str] = ()) -> str:
    """Words in sentences and paragraphs, the trigger's in one stretch somewhere between."""
    words = [rng.choice(FILLER) for _ in range(num_words - len(trigger))]
    at = rng.randrange(len(words) + 1)
    words[at:at] = trigger
    ends = rng.choices([" ", ". ", ".\n\n"], weights=[93, 6, 1], k=len(words))
    return "".join(word + end for word, end in zip(words, ends, strict=True))


def bare(text: str) -> str:
    """The words of a text, each between two spaces."""
    return f" {' '.join(text.replace('.', ' ').split())} "


def holds(text: str, *triggers: Sequence[str]) -> bool:
    """Whether each trigger stands in `text`, its words in a row."""
    return all(f" {' '.join(trigger)} " in bare(text) for trigger in triggers)


def text_of(body: Body) -> str:
    """All that the model is told."""
    return "\n".join(str(message["content"]) for message in body["messages"])


def chat(*contents: str, **fields: Any) -> Body:
    """A chat whose turns alternate and end with the user's."""
    roles = ("user", "assistant")
    messages = [
        {"role": roles[(len(contents) - 1 - index) % 2], "content": text} for index, text in enumerate(contents)
    ]
    return {"model": "m", "messages": messages, "temperature": 0.0, "max_tokens": 64} | fields


class Model:
    """Fails with the chance that `rate` gives a body; counts its answers, and gives the same to the same try again."""

    def __init__(self, rate: Callable[[Body], float], seed: int = 0) -> None:
        self.num_answers = 0
        self._rate = rate
        self._rng = random.Random(seed)
        self._known: dict[str, list[bool]] = {}

    def __call__(self, body: Body, num: int) -> list[bool]:
        known = self._known.setdefault(content_key(body), [])
        while len(known) < num:
            self.num_answers += 1
            known.append(self._rng.random() < self._rate(body))
        return known[:num]
