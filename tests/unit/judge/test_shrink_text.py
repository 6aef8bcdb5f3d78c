from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.judge.shrink_text import graphemes, split
from qgate.schemas.minimised import LEVELS

TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("\n .!?。ก้ำ好👩\u200d🚀🇩🇪\u0301\r가")), min_size=1)


@given(TEXTS)
def test_pieces_join_to_the_text_and_none_is_empty(text: str) -> None:
    for level in LEVELS:
        pieces = split(text, level)
        assert "".join(pieces) == text
        assert all(pieces)


@given(TEXTS)
def test_no_mark_is_torn_from_what_it_stands_on(text: str) -> None:
    for piece in graphemes(text)[1:]:
        assert not unicodedata.category(piece[0]).startswith("M") or text[text.index(piece) - 1] in "\r\n"


def test_levels_of_english() -> None:
    text = "It is 3.5 m. Really?\n- one\n\nNew part."
    assert split(text, "turns") == (text,)
    assert split(text, "paragraphs") == ("It is 3.5 m. Really?\n- one\n\n", "New part.")
    assert split(text, "sentences") == ("It is 3.5 m. ", "Really?\n", "- one\n\n", "New part.")
    assert split("a bc\td", "words") == ("a ", "bc\t", "d")


def test_levels_of_scripts_without_spaces() -> None:
    assert split("你好。用Python写3行！好吗？", "sentences") == ("你好。", "用Python写3行！", "好吗？")
    assert split("用Python写3行", "words") == ("用", "Python", "写", "3", "行")
    assert split("ที่น้ำ ไป", "words") == ("ที่", "น้ำ ", "ไ", "ป")


@pytest.mark.parametrize("cluster", ["é", "👨\u200d👩\u200d👧", "🇩🇪", "👍🏽", "น้ำ", "각", "\r\n", "क्षि"[:2]])
def test_what_a_reader_sees_as_one_is_one(cluster: str) -> None:
    assert graphemes(f"{cluster}x") == (cluster, "x")


def test_an_empty_text_is_one_empty_piece() -> None:
    assert split("", "words") == ("",)
