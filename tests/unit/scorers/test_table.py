"""The table of scorers: lookup, arguments checked up front, and what holds for all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgate import scorers
from qgate.errors import PluginError

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "bleu": [{"values": ["the lamp is lit"]}],
    "chrf": [{"values": ["灯塔亮了", "the lamp is lit"]}],
    "constraints": [{"checks": [{"name": "punctuation:no_comma"}, {"name": "change_case:lowercase"}], "strict": True}],
    "rouge": [{"values": ["the lamp is lit"]}, {"values": ["灯塔亮了"], "kind": "rouge2"}],
    "ter": [{"values": ["the lamp is lit"]}],
    "token_f1": [{"values": ["the lamp", "灯塔"]}],
    "similarity": [{"values": ["the lamp is lit"]}],
    "choice": [{"answer": "B", "options": ["one", "two"]}, {"answer": "ب", "options": ["س", "ص"], "letters": "أبجد"}],
    "contains_all": [{"values": ["a", ["灯塔", "燈塔"]], "none_of": ["x"]}, {"values": ["A b"], "normalize": False}],
    "enumeration": [{"count": 3}, {"count": 60, "distinct": False}],
    "exact": [{"values": ["blue", "蓝"]}],
    "free_text": [{"length": 5}, {"length": 50, "values": ["lamp"]}],
    "number": [{"value": 42}, {"value": 1.5, "tolerance": 0.1, "pick": "only"}],
    "ordered": [{"values": ["a", "b", ["c", "d"]]}],
}
LANGUAGES = ("en", "zh", "ja", "ar", "ru", "es", "th", "zh-Hant")
CASES = [(name, args) for name, examples in EXAMPLES.items() for args in examples]


def test_every_scorer_has_examples() -> None:
    assert tuple(sorted(EXAMPLES)) == scorers.NAMES


def test_an_unknown_name_is_refused_with_the_near_match() -> None:
    with pytest.raises(PluginError, match="contain_all") as caught:
        scorers.load("contain_all")
    assert caught.value.advice is not None
    assert caught.value.advice == "did you mean 'contains_all'?"


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("contains_all", {}, "contains_all: `values`: is missing"),
        ("contains_all", {"values": []}, "`values`"),
        ("contains_all", {"values": ["ok", " "]}, r"`values\.1`"),
        ("contains_all", {"values": [[]]}, r"`values\.0`"),
        ("contains_all", {"values": ["ok"], "nine_of": []}, "`nine_of`: no such argument; did you mean 'none_of'"),
        ("exact", {"values": "blue"}, "`values`"),
        ("number", {"value": "many"}, "`value`"),
        ("number", {"value": float("nan")}, "`value`"),
        ("number", {"value": 1, "tolerance": -1}, "`tolerance`"),
        ("choice", {"answer": "C", "options": ["a", "b"]}, "answer"),
        ("ordered", {"values": ["a"]}, "`values`"),
        ("enumeration", {"count": 0}, "`count`"),
        ("free_text", {"length": "long"}, "`length`"),
        ("constraints", {"checks": [{"name": "punctuation:no_coma"}]}, "did you mean 'punctuation:no_comma'"),
        ("constraints", {"checks": [{"name": "x"}]}, r"^constraints: `checks\.0`: no check named 'x'[^`]*$"),
        ("constraints", {"checks": []}, "`checks`: Tuple should have at least 1 item"),
        ("choice", {"values": ["B"]}, "`values`: no such argument; known: answer, options, letters"),
        ("constraints", {"checks": [{"name": "keywords:existence", "args": {}}]}, "keywords:existence: `keywords`"),
    ],
)
def test_wrong_arguments_are_named_before_any_answer_is_read(name: str, args: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        scorers.load(name).read(args)
    with pytest.raises(ValueError, match=said):
        scorers.load(name)("an answer", args, "en")


@pytest.mark.parametrize(("name", "args"), CASES)
@pytest.mark.parametrize("empty", ["", " \n\t", "\u200b\ufeff", "<think>the answer is B, 42 a b c"])
def test_no_answer_scores_zero(name: str, args: dict[str, Any], empty: str) -> None:
    assert scorers.load(name)(empty, args, "en") == 0.0


@pytest.mark.parametrize(("name", "args"), CASES)
@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=400), language=st.sampled_from(LANGUAGES))
def test_scores_any_text_within_0_and_1(name: str, args: dict[str, Any], text: str, language: str) -> None:
    assert 0.0 <= scorers.load(name)(text, args, language) <= 1.0


ALPHABET = [*"0123456789٠٤๔２,.'- \n十百万亿一二AB答案是第步:()*#|\"「」{}[]", "two ", "Step ", "\ud800"]


@pytest.mark.parametrize(("name", "args"), CASES)
@settings(max_examples=40, deadline=None)
@given(text=st.lists(st.sampled_from(ALPHABET), max_size=60).map("".join), language=st.sampled_from(LANGUAGES))
def test_scores_text_full_of_marks_within_0_and_1(name: str, args: dict[str, Any], text: str, language: str) -> None:
    assert 0.0 <= scorers.load(name)(text, args, language) <= 1.0


def test_a_leading_thinking_block_is_not_the_answer() -> None:
    assert scorers.load("number")("<think>maybe 7?</think>\n42", {"value": 42, "pick": "only"}, "en") == 1.0
