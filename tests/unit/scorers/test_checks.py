"""Every check on an answer that keeps it, one that does not, and on anything at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgate.scorers import checks

from .checks_cases import CASES

FLAT = [(name, *case) for name, cases in CASES.items() for case in cases]
ONE_LANGUAGE = {
    "change_case:uppercase", "change_case:lowercase", "change_case:title", "change_case:capital_word_frequency",
    "detectable_format:alphabetical",
}  # fmt: skip
"""Checks of letter case and letter order, which Chinese does not have."""


def test_every_check_has_cases_in_english_and_chinese() -> None:
    assert tuple(sorted(CASES)) == checks.NAMES
    assert {name for name, cases in CASES.items() if "zh" not in {case[0] for case in cases}} == ONE_LANGUAGE
    assert all("en" in {case[0] for case in cases} for cases in CASES.values())


@pytest.mark.parametrize(("name", "language", "args", "right", "wrong"), FLAT)
def test_right_and_wrong(name: str, language: str, args: dict[str, Any], right: str, wrong: str) -> None:
    check = checks.find(name)
    assert check(right, args, language)
    assert not check(wrong, args, language)


MARKS = st.lists(
    st.sampled_from([*"aB1٣中。.!，,\n -*|#`<>[]「」\"{}:'\\(", "******", "SECTION 1", "```\n", "P.S.", "\0"])
)


@pytest.mark.parametrize(("name", "args"), [(name, cases[0][1]) for name, cases in CASES.items()])
@settings(max_examples=30, deadline=None)
@given(text=st.text(max_size=200) | MARKS.map("".join))
def test_any_text_is_answered(name: str, args: dict[str, Any], text: str) -> None:
    assert checks.find(name)(text, args, "en") in (True, False)


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("length_constraints:number_words", {}, "needs `min`, `max` or both"),
        ("length_constraints:number_words", {"min": 3, "max": 2}, "`min` is greater than `max`"),
        ("length_constraints:number_words", {"mim": 3}, "`mim`: no such argument; did you mean 'min'"),
        ("keywords:existence", {"keywords": [" "]}, r"`keywords\.0`"),
        ("keywords:letter_frequency", {"letter": "ab", "max": 1}, "`letter`"),
        ("language:response_language", {"language": "tlh"}, "cannot tell the language 'tlh'"),
        ("startend:each_line", {}, "needs `prefix`, `suffix` or both"),
        ("detectable_format:table", {"columns": ["one"]}, "`columns`"),
        ("detectable_format:json_schema", {"schema": {"type": "objekt"}}, "is no JSON Schema"),
        ("detectable_format:json_schema", {"schema": {"$ref": "https://example.org/a"}}, "nothing is fetched"),
        ("detectable_format:json_schema", {"schema": {"$ref": "#/$defs/none"}}, "nothing is fetched"),
        ("detectable_format:code", {"language": "cobol"}, "`language`"),
    ],
)
def test_wrong_arguments_are_named(name: str, args: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        checks.find(name).read(args)


def test_an_unknown_check_is_refused_with_the_near_match() -> None:
    with pytest.raises(ValueError, match="did you mean 'keywords:existence'"):
        checks.find("keyword:existence")
