"""The constraints that a writing task can carry: what each asks of the reference, of the prompt and of the scorer.

A wish is drawn once (its parameters), may then shape any number of scenes, and is worded and checked by its parameters
alone. A late wish is drawn from the finished reference. Touches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from scene import POSTSCRIPT, QUOTES, SECTION, Scene, holds, length

Params = dict[str, Any]


@dataclass(frozen=True)
class Wish:
    """One constraint."""

    difficulty: int
    draw: Callable[[Scene], Params]
    shape: Callable[[Scene, Params], None]
    checks: Callable[[Params, str], list[tuple[str, Params]]]
    late: Callable[[Scene, str], Params] | None = None
    """Parameters from the rendered reference, in place of `draw`."""


def _nothing(scene: Scene) -> Params:
    return {}


def _setting(**fields: Any) -> Callable[[Scene, Params], None]:
    """Sets fields of the scene; a value that is a parameter's name in braces takes that parameter."""

    def shape(scene: Scene, params: Params) -> None:
        for name, value in fields.items():
            setattr(scene, name, params[value[1:-1]] if isinstance(value, str) and value[:1] == "{" else value)

    return shape


def _blocks(layout: str) -> Callable[[Scene, Params], None]:
    """Spreads one sentence more than there are blocks over `n` blocks."""

    def shape(scene: Scene, params: Params) -> None:
        scene.layout, scene.parts, scene.count = layout, params["n"], params["n"] + 1

    return shape


def _number(low: int, high: int) -> Callable[[Scene], Params]:
    """The number that an earlier wish needs, or a small one: 3 or 4 outside English and Chinese, as their grammar likes."""

    def draw(scene: Scene) -> Params:
        drawn = scene.dice.between(*((low, high) if scene.language in ("en", "zh") else (3, 4)))
        return {"n": scene.count or drawn}

    return draw


def _exactly(name: str, key: str = "n", **more: Any) -> Callable[[Params, str], list[tuple[str, Params]]]:
    return lambda params, language: [(name, {"min": params[key], "max": params[key], **more})]


def _at_least(name: str) -> Callable[[Params, str], list[tuple[str, Params]]]:
    return lambda params, language: [(name, {"min": params["n"]})]


def _fixed(name: str, **args: Any) -> Callable[[Params, str], list[tuple[str, Params]]]:
    return lambda params, language: [(name, args)]


def _keep(scene: Scene, params: Params) -> None:
    """Leaves the scene as it is."""


# Lengths, drawn from the finished reference.


def _step(scene: Scene) -> int:
    return 10 if scene.language in ("zh", "ja") else 5


def _floor(scene: Scene, text: str) -> Params:
    step = _step(scene)
    return {"n": max(step, length(text, scene.language) * 3 // 4 // step * step)}


def _ceiling(scene: Scene, text: str) -> Params:
    step = _step(scene)
    return {"n": (length(text, scene.language) // step + 2) * step}


def _range(scene: Scene, text: str) -> Params:
    step, num = _step(scene), length(text, scene.language)
    return {"a": max(step, num // step * step - step), "b": (num // step + 1) * step}


def _exact(scene: Scene, text: str) -> Params:
    return {"n": length(text, scene.language)}


def _longest(scene: Scene, text: str) -> Params:
    sentences = text.replace("。", ".").replace("\n", ".").split(".")
    longest = max(length(one, scene.language) for one in sentences)
    return {"n": max(longest, 12)}


def _letter(scene: Scene, text: str) -> Params:
    letter = scene.dice.pick(scene.texts["letters"])
    return {"w": letter, "n": text.casefold().count(letter)}


# Words.


def _word(scene: Scene) -> Params:
    word = scene.topic["keywords"][0] if scene.language == "ru" else scene.dice.pick(scene.topic["keywords"])
    scene.need(scene.with_word(word)[0])
    return {"w": word}


def _two_words(scene: Scene) -> Params:
    first, second = scene.dice.several(scene.topic["keywords"], 2)
    scene.need(scene.with_word(first)[0])
    scene.need(scene.with_word(second)[-1])
    return {"w": first, "v": second}


def _word_times(scene: Scene) -> Params:
    word = scene.topic["keywords"][0]
    found = scene.with_word(word)
    num = 3 if len(found) >= 3 else 2
    for sentence in scene.dice.several(found, num):
        scene.need(sentence)
    scene.banned.append(word)
    scene.count = max(scene.count or 0, num + 1)
    return {"w": word, "n": num}


def _two_to_avoid(scene: Scene) -> Params:
    first, second = scene.dice.several(scene.topic["avoid"], 2)
    return {"w": first, "v": second}


def _words_in_order(scene: Scene) -> Params:
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


def _word_in_every(scene: Scene) -> Params:
    word = scene.topic["keywords"][0]
    found = scene.with_word(word)
    scene.needed, scene.count = found[:3], min(3, len(found))
    return {"w": word}


def _first_word(scene: Scene) -> Params:
    num = scene.dice.between(3, 4)
    nth = scene.dice.between(2, num)
    word = scene.dice.pick(scene.texts["linkers"])
    sentences = scene.dice.several(scene.sentences, num)
    opened = sentences[nth - 1]
    sentences[nth - 1] = word + (opened if scene.language == "zh" else f" {opened[0].lower()}{opened[1:]}")
    scene.needed = sentences
    scene.ordered, scene.count, scene.layout, scene.parts = True, num, "paragraphs", num
    return {"n": num, "k": nth, "w": word}


def _words_checks(params: Params, language: str) -> list[tuple[str, Params]]:
    return [("keywords:existence", {"keywords": [params[key] for key in ("w", "v") if key in params]})]


def _quotation(params: Params, language: str) -> list[tuple[str, Params]]:
    opening, closing = QUOTES.get(language, '""')
    return [("startend:quotation", {"open": opening, "close": closing})]


WORDS, SENTENCES = "length_constraints:number_words", "length_constraints:number_sentences"
PARAGRAPHS = "length_constraints:number_paragraphs"

WISHES: dict[str, Wish] = {
    "words_min": Wish(1, _nothing, _keep, _at_least(WORDS), _floor),
    "words_max": Wish(2, _nothing, _keep, lambda p, lang: [(WORDS, {"max": p["n"]})], _ceiling),
    "words_between": Wish(3, _nothing, _keep, lambda p, lang: [(WORDS, {"min": p["a"], "max": p["b"]})], _range),
    "words_exact": Wish(5, _nothing, _keep, _exactly(WORDS), _exact),
    "short_sentences": Wish(
        3, _nothing, _keep, lambda p, lang: [("length_constraints:sentence_length", {"max": p["n"]})], _longest
    ),
    "letter_max": Wish(
        4, _nothing, _keep, lambda p, lang: [("keywords:letter_frequency", {"letter": p["w"], "max": p["n"]})], _letter
    ),
    "sentences": Wish(2, _number(2, 5), _setting(count="{n}"), _exactly(SENTENCES)),
    "bullets": Wish(
        2, _number(3, 6), _setting(count="{n}", layout="bullets"), _exactly("detectable_format:number_bullet_lists")
    ),
    "numbered": Wish(
        2, _number(3, 6), _setting(count="{n}", layout="numbered"), _exactly("detectable_format:number_numbered_lists")
    ),
    "lines": Wish(3, _number(3, 6), _setting(count="{n}", layout="lines"), _exactly("length_constraints:number_lines")),
    "paragraphs": Wish(3, _number(2, 4), _blocks("paragraphs"), _exactly(PARAGRAPHS)),
    "first_word": Wish(
        4,
        _first_word,
        _keep,
        lambda p, lang: [
            (
                "length_constraints:nth_paragraph_first_word",
                {"min": p["n"], "max": p["n"], "nth": p["k"], "first_word": p["w"]},
            )
        ],
    ),
    "keyword": Wish(1, _word, _keep, _words_checks),
    "keywords": Wish(2, _two_words, _keep, _words_checks),
    "frequency": Wish(
        4,
        _word_times,
        _keep,
        lambda p, lang: [("keywords:frequency", {"keyword": p["w"], "min": p["n"], "max": p["n"]})],
    ),
    "forbid": Wish(
        1,
        _two_to_avoid,
        _keep,
        lambda p, lang: [("keywords:forbidden_words", {"forbidden_words": [p["w"], p["v"]]})],
    ),
    "order": Wish(
        3, _words_in_order, _keep, lambda p, lang: [("keywords:order", {"keywords": [p["w"], p["v"], p["u"]]})]
    ),
    "every_sentence": Wish(
        4, _word_in_every, _keep, lambda p, lang: [("keywords:every_sentence", {"keyword": p["w"]})]
    ),
    "start": Wish(
        2,
        lambda scene: {"p": scene.dice.pick(scene.texts["openers"])},
        _setting(opener="{p}"),
        lambda p, lang: [("startend:start_checker", {"phrase": p["p"]})],
    ),
    "end": Wish(
        3,
        lambda scene: {"p": scene.dice.pick(scene.texts["closers"])},
        _setting(closer="{p}"),
        lambda p, lang: [("startend:end_checker", {"phrase": p["p"]})],
    ),
    "upper": Wish(3, _nothing, _setting(case="upper"), _fixed("change_case:uppercase")),
    "lower": Wish(3, _nothing, _setting(case="lower"), _fixed("change_case:lowercase")),
    "no_comma": Wish(2, _nothing, _keep, _fixed("punctuation:no_comma")),
    "exclaim": Wish(3, _nothing, _setting(exclaim=True), _fixed("punctuation:sentence_end", marks="!！")),
    "quotes": Wish(2, _nothing, _setting(quotes=True), _quotation),
    "title": Wish(
        2,
        lambda scene: {"title": scene.dice.pick(scene.texts["titles"])},
        _setting(title="{title}"),
        _fixed("detectable_format:title"),
    ),
    "highlights": Wish(
        3, _number(2, 3), _setting(highlights="{n}"), _at_least("detectable_format:number_highlighted_sections")
    ),
    "sections": Wish(
        3,
        _number(2, 4),
        _blocks("sections"),
        lambda p, lang: [
            (
                "detectable_format:multiple_sections",
                {"section_spliter": SECTION.get(lang, "SECTION"), "min": p["n"], "max": p["n"]},
            )
        ],
    ),
    "placeholders": Wish(
        3,
        lambda scene: {"n": scene.dice.between(2, 3)},
        lambda scene, p: setattr(scene, "placeholders", tuple(scene.texts["placeholders"][: p["n"]])),
        _at_least("detectable_content:number_placeholders"),
    ),
    "postscript": Wish(
        2,
        lambda scene: {"ps": scene.dice.pick(scene.texts["postscripts"])},
        _setting(postscript="{ps}"),
        lambda p, lang: [("detectable_content:postscript", {"postscript_marker": POSTSCRIPT.get(lang, "P.S.")})],
    ),
    "plain": Wish(1, _nothing, _keep, _fixed("detectable_format:plain")),
    "each_line": Wish(3, _nothing, _setting(layout="quoted"), _fixed("startend:each_line", prefix="> ")),
    "two_versions": Wish(
        3, _nothing, _setting(layout="versions", parts=2, count=4), _fixed("combination:two_responses")
    ),
    "language": Wish(1, _nothing, _keep, lambda p, lang: [("language:response_language", {"language": lang})]),
}
"""Name (also of its wording in texts/<language>.yaml) to wish. Difficulties are those of the wish alone."""
