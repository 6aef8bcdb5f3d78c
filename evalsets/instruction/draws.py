"""Parameters of wishes, drawn from a scene: lengths from its finished reference, words from its sentences. Pure.

A drawn word also puts the sentences that it needs into the scene.
"""

from __future__ import annotations

from itertools import permutations

from scene import Scene, holds, length
from wish import Params


def rounding(scene: Scene) -> int:
    """What lengths are rounded to."""
    return 10 if scene.language in ("zh", "ja") else 5


def floor(scene: Scene, text: str) -> Params:
    step = rounding(scene)
    return {"n": max(step, length(text, scene.language) * 3 // 4 // step * step)}


def ceiling(scene: Scene, text: str) -> Params:
    step = rounding(scene)
    return {"n": (length(text, scene.language) // step + 2) * step}


def bounds(scene: Scene, text: str) -> Params:
    step, num = rounding(scene), length(text, scene.language)
    return {"a": max(step, num // step * step - step), "b": (num // step + 1) * step}


def exact(scene: Scene, text: str) -> Params:
    return {"n": length(text, scene.language)}


def longest(scene: Scene, text: str) -> Params:
    sentences = text.replace("。", ".").replace("\n", ".").split(".")
    return {"n": max(12, *(length(one, scene.language) for one in sentences))}


def letter(scene: Scene, text: str) -> Params:
    drawn = scene.dice.pick(scene.texts["letters"])
    return {"w": drawn, "n": text.casefold().count(drawn)}


def word(scene: Scene) -> Params:
    word = scene.topic["keywords"][0] if scene.language == "ru" else scene.dice.pick(scene.topic["keywords"])
    scene.need(scene.with_word(word)[0])
    return {"w": word}


def two_words(scene: Scene) -> Params:
    first, second = scene.dice.several(scene.topic["keywords"], 2)
    scene.need(scene.with_word(first)[0])
    scene.need(scene.with_word(second)[-1])
    return {"w": first, "v": second}


def word_times(scene: Scene) -> Params:
    word = scene.topic["keywords"][0]
    found = scene.with_word(word)
    num = 3 if len(found) >= 3 else 2
    for sentence in scene.dice.several(found, num):
        scene.need(sentence)
    scene.banned.append(word)
    scene.count = max(scene.count or 0, num + 1)
    return {"w": word, "n": num}


def two_to_avoid(scene: Scene) -> Params:
    first, second = scene.dice.several(scene.topic["avoid"], 2)
    return {"w": first, "v": second}


def words_in_order(scene: Scene) -> Params:
    for words in permutations(scene.dice.shuffled(scene.topic["keywords"]), 3):
        first_mentions = [
            [one for one in scene.with_word(word) if not any(holds(one, w, scene.language) for w in words[at + 1 :])]
            for at, word in enumerate(words)
        ]
        if all(first_mentions):
            break
    scene.needed, scene.ordered = list(dict.fromkeys(found[0] for found in first_mentions)), True
    scene.banned += words
    return {"w": words[0], "v": words[1], "u": words[2]}


def word_in_every(scene: Scene) -> Params:
    word = scene.topic["keywords"][0]
    found = scene.with_word(word)
    scene.needed, scene.count = found[:3], min(3, len(found))
    return {"w": word}


def first_word(scene: Scene) -> Params:
    num = scene.dice.between(3, 4)
    nth = scene.dice.between(2, num)
    word = scene.dice.pick(scene.texts["linkers"])
    sentences = scene.dice.several(scene.sentences, num)
    opened = sentences[nth - 1]
    sentences[nth - 1] = word + (opened if scene.language == "zh" else f" {opened[0].lower()}{opened[1:]}")
    scene.needed = sentences
    scene.ordered, scene.count, scene.layout, scene.parts = True, num, "paragraphs", num
    return {"n": num, "k": nth, "w": word}
