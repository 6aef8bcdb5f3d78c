"""The constraints that a writing task can carry: what each asks of the reference and of the scorer. Data only."""

from __future__ import annotations

import draws
from scene import POSTSCRIPT, QUOTES, SECTION
from wish import Params, Wish, at_least, blocks, exactly, fixed, keep, nothing, number, setting


def _words_checks(params: Params, language: str) -> list[tuple[str, Params]]:
    return [("keywords:existence", {"keywords": [params[key] for key in ("w", "v") if key in params]})]


def _quotation(params: Params, language: str) -> list[tuple[str, Params]]:
    opening, closing = QUOTES.get(language, '""')
    return [("startend:quotation", {"open": opening, "close": closing})]


WORDS, SENTENCES = "length_constraints:number_words", "length_constraints:number_sentences"
PARAGRAPHS = "length_constraints:number_paragraphs"

WISHES: dict[str, Wish] = {
    "words_min": Wish(1, nothing, keep, at_least(WORDS), draws.floor),
    "words_max": Wish(2, nothing, keep, lambda p, lang: [(WORDS, {"max": p["n"]})], draws.ceiling),
    "words_between": Wish(3, nothing, keep, lambda p, lang: [(WORDS, {"min": p["a"], "max": p["b"]})], draws.bounds),
    "words_exact": Wish(5, nothing, keep, exactly(WORDS), draws.exact),
    "short_sentences": Wish(
        3, nothing, keep, lambda p, lang: [("length_constraints:sentence_length", {"max": p["n"]})], draws.longest
    ),
    "letter_max": Wish(
        4,
        nothing,
        keep,
        lambda p, lang: [("keywords:letter_frequency", {"letter": p["w"], "max": p["n"]})],
        draws.letter,
    ),
    "sentences": Wish(2, number(2, 5), setting(count="{n}"), exactly(SENTENCES)),
    "bullets": Wish(
        2, number(3, 6), setting(count="{n}", layout="bullets"), exactly("detectable_format:number_bullet_lists")
    ),
    "numbered": Wish(
        2, number(3, 6), setting(count="{n}", layout="numbered"), exactly("detectable_format:number_numbered_lists")
    ),
    "lines": Wish(3, number(3, 6), setting(count="{n}", layout="lines"), exactly("length_constraints:number_lines")),
    "paragraphs": Wish(3, number(2, 4), blocks("paragraphs"), exactly(PARAGRAPHS)),
    "first_word": Wish(
        4,
        draws.first_word,
        keep,
        lambda p, lang: [
            (
                "length_constraints:nth_paragraph_first_word",
                {"min": p["n"], "max": p["n"], "nth": p["k"], "first_word": p["w"]},
            )
        ],
    ),
    "keyword": Wish(1, draws.word, keep, _words_checks),
    "keywords": Wish(2, draws.two_words, keep, _words_checks),
    "frequency": Wish(
        4,
        draws.word_times,
        keep,
        lambda p, lang: [("keywords:frequency", {"keyword": p["w"], "min": p["n"], "max": p["n"]})],
    ),
    "forbid": Wish(
        1,
        draws.two_to_avoid,
        keep,
        lambda p, lang: [("keywords:forbidden_words", {"forbidden_words": [p["w"], p["v"]]})],
    ),
    "order": Wish(
        3, draws.words_in_order, keep, lambda p, lang: [("keywords:order", {"keywords": [p["w"], p["v"], p["u"]]})]
    ),
    "every_sentence": Wish(
        4, draws.word_in_every, keep, lambda p, lang: [("keywords:every_sentence", {"keyword": p["w"]})]
    ),
    "start": Wish(
        2,
        lambda scene: {"p": scene.dice.pick(scene.texts["openers"])},
        setting(opener="{p}"),
        lambda p, lang: [("startend:start_checker", {"phrase": p["p"]})],
    ),
    "end": Wish(
        3,
        lambda scene: {"p": scene.dice.pick(scene.texts["closers"])},
        setting(closer="{p}"),
        lambda p, lang: [("startend:end_checker", {"phrase": p["p"]})],
    ),
    "upper": Wish(3, nothing, setting(case="upper"), fixed("change_case:uppercase")),
    "lower": Wish(3, nothing, setting(case="lower"), fixed("change_case:lowercase")),
    "no_comma": Wish(2, nothing, keep, fixed("punctuation:no_comma")),
    "exclaim": Wish(3, nothing, setting(exclaim=True), fixed("punctuation:sentence_end", marks="!！")),
    "quotes": Wish(2, nothing, setting(quotes=True), _quotation),
    "title": Wish(
        2,
        lambda scene: {"title": scene.dice.pick(scene.texts["titles"])},
        setting(title="{title}"),
        fixed("detectable_format:title"),
    ),
    "highlights": Wish(
        3, number(2, 3), setting(highlights="{n}"), at_least("detectable_format:number_highlighted_sections")
    ),
    "sections": Wish(
        3,
        number(2, 4),
        blocks("sections"),
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
        at_least("detectable_content:number_placeholders"),
    ),
    "postscript": Wish(
        2,
        lambda scene: {"ps": scene.dice.pick(scene.texts["postscripts"])},
        setting(postscript="{ps}"),
        lambda p, lang: [("detectable_content:postscript", {"postscript_marker": POSTSCRIPT.get(lang, "P.S.")})],
    ),
    "plain": Wish(1, nothing, keep, fixed("detectable_format:plain")),
    "each_line": Wish(3, nothing, setting(layout="quoted"), fixed("startend:each_line", prefix="> ")),
    "two_versions": Wish(3, nothing, setting(layout="versions", parts=2, count=4), fixed("combination:two_responses")),
    "language": Wish(1, nothing, keep, lambda p, lang: [("language:response_language", {"language": lang})]),
}
"""Name (also of its wording in texts/<language>.yaml) to wish. Difficulties are those of the wish alone."""
