"""Every scorer, in every language of the shipped sets, on right answers in odd dress and on what only looks like one."""

from __future__ import annotations

import json
import unicodedata
from typing import Any, NamedTuple

import pytest

from qgate import scorers


class Words(NamedTuple):
    """Two phrases and the number 42."""

    one: str
    other: str
    number: tuple[str, ...]


LANGUAGES = {
    "en": Words("Blue lamp", "Green door", ("42", "forty-two", "Forty two boxes.", "It is 42¹.")),
    "zh": Words("蓝色的灯", "绿色的门", ("四十二", "肆拾贰", "四十贰个。", "答案是42。")),
    "ja": Words("青いランプ", "緑のドア", ("四十二", "42個です。", "№42", "答えは四十二です。")),
    "ar": Words("مصباح أزرق", "باب أخضر", ("٤٢", "اثنان وأربعون", "٤٢ صندوقا", "الجواب: ٤٢.")),
    "ru": Words("Синяя ёлка", "Зелёная дверь", ("42", "сорок два", "Сорок два.", "42 шт.")),
    "es": Words("Lámpara azul", "Puerta verde", ("42", "cuarenta y dos", "Son 42.", "Cuarenta y dos cajas")),
    "th": Words("โคมไฟสีฟ้า", "ประตูสีเขียว", ("๔๒", "สี่สิบสอง", "42 ครับ", "รวม ๔๒ กล่อง")),
}
REFERENCES = ("similarity", "chrf", "bleu", "ter", "rouge", "token_f1")


def task(scorer: str, words: Words) -> tuple[dict[str, Any], str]:
    """Arguments, and the right answer."""
    both = f"{words.one} {words.other}"
    return {
        "exact": ({"values": [words.one]}, words.one),
        "contains_all": ({"values": [words.one], "none_of": [words.other]}, words.one),
        "ordered": ({"values": [words.one, words.other]}, f"{words.one}\n{words.other}"),
        "number": ({"value": 42}, "42"),
        "choice": ({"answer": "B", "options": [words.other, words.one]}, "B"),
        "enumeration": ({"count": 2}, f"1. {words.one}\n2. {words.other}"),
        "free_text": ({"length": 2, "values": [words.one]}, both),
        "constraints": (
            {"checks": [{"name": "keywords:order", "args": {"keywords": [words.one, words.other]}}]},
            f"{words.one}\n{words.other}",
        ),
    }.get(scorer, ({"values": [f"{both} {both}"]}, f"{both} {both}"))


def wide(text: str) -> str:
    return "".join(chr(ord(ch) + 0xFEE0) if "!" <= ch <= "~" else ch for ch in text)


def dressed(text: str) -> dict[str, str]:
    """The same answer as models give it."""
    return {
        "thinking": f"<think>\n{text[::-1]}\n</think>\n\n{text}",
        "no thinking": f"<think>\n\n</think>\n\n{text}",
        "lines of another system": text.replace("\n", "\r\n") + "\r\n",
        "blank lines": f"\n\n{text}\n\n",
        "byte order mark": f"\ufeff{text}",
        "right to left": f"\u200f{text}",
        "decomposed": unicodedata.normalize("NFD", text),
    }


def phrased(text: str) -> dict[str, str]:
    """The same, where a phrase is asked for and its punctuation is not."""
    return dressed(text) | {
        "full-width": wide(text),
        "zero-width": f"{text[0]}\u200b{text[1:]}",
        "fence": f"```\n{text}\n```",
        "code": f"`{text}`",
        "bold": f"**{text}**",
        "quotes": f"“{text}”",
        "corner quotes": f"「{text}」",
        "capitals": text.upper(),
        "full stop": f"{text}。",
    }


def explained(text: str) -> dict[str, str]:
    """The same, where more may be said."""
    return {
        "JSON": json.dumps({"answer": text}, ensure_ascii=False),
        "LaTeX": f"\\boxed{{{text}}}",
        "a tag": f"<answer>{text}</answer>",
        "a trailing remark": f"{text}\n\nThat is what the text says.",
    }


def malformed(text: str) -> dict[str, str]:
    """What is no answer."""
    return {
        "nothing": "",
        "blank": " \n\t",
        "thought of only": f"<think>{text}</think>",
        "never thought to an end": f"<think>{text}",
        "dots": "......",
        "question marks": "?" * len(text),
        "replacement characters": "\ufffd" * len(text),
    }


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", scorers.NAMES)
def test_an_answer_counts_in_any_dress_and_none_does_not(name: str, language: str) -> None:
    args, right = task(name, LANGUAGES[language])
    answers = {"as it is": right}
    if name not in REFERENCES:
        answers |= dressed(right)
    if name in {"exact", "contains_all", "number", "choice"}:
        answers |= phrased(right)
    if name in {"contains_all", "number", "choice"}:
        answers |= explained(right)
    score = scorers.load(name)
    assert {how: score(text, args, language) for how, text in answers.items()} == pytest.approx(
        dict.fromkeys(answers, 1.0)
    )
    refused = malformed(right)
    assert {how: score(text, args, language) for how, text in refused.items()} == dict.fromkeys(refused, 0.0)


@pytest.mark.parametrize("language", LANGUAGES)
def test_another_answer_is_wrong_in_any_dress(language: str) -> None:
    words = LANGUAGES[language]
    for name, wrong in (("exact", words.other), ("contains_all", words.other), ("number", "420"), ("choice", "A")):
        args, _ = task(name, words)
        answers = phrased(wrong) | (explained(wrong) if name != "exact" else {})
        scored = {how: scorers.load(name)(text, args, language) for how, text in answers.items()}
        assert scored == dict.fromkeys(answers, 0.0), name


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_are_read_in_the_scripts_and_words_of_the_language(language: str) -> None:
    number = scorers.load("number")
    for text in LANGUAGES[language].number:
        assert number(text, {"value": 42}, language) == 1.0, text
        assert number(text, {"value": 4}, language) == 0.0, text
    for text in ("4 2", "142", "4.2", "A42", "4²", "-42", "42:15"):
        assert number(text, {"value": 42}, language) == 0.0, text
