from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.judge.defects import scripts

NAMES = {
    "Han": ("CJK", "IDEOGRAPHIC"),
    "Kana": ("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA"),
    "Latin": (
        "LATIN",
        "FULLWIDTH LATIN",
        "FEMININE",
        "MASCULINE",
        "MODIFIER",
        "GREEK LETTER SMALL",
        "CYRILLIC LETTER SMALL",
    ),
    "Greek": ("GREEK", "COPTIC"),
}
LETTERS = [chr(code) for code in range(0x10000) if unicodedata.category(chr(code)) in {"Lu", "Ll", "Lo", "Lt"}]


def script_of(char: str) -> str | None:
    return next((word.script for word in scripts.words(char)), None)


def test_the_blocks_hold_letters_of_their_script_only() -> None:
    for char in LETTERS:
        script = script_of(char)
        if script not in {None, "Other"}:
            assert unicodedata.name(char).startswith(NAMES.get(script, (script.upper(),))), (script, char)


def test_nearly_every_letter_of_the_basic_plane_has_a_script() -> None:
    unknown = [char for char in LETTERS if script_of(char) is None]
    assert len(unknown) <= 0.01 * len(LETTERS)


@pytest.mark.parametrize(
    ("char", "script"),
    [("é", "Latin"), ("ß", "Latin"), ("ệ", "Latin"), ("頻", "Han"), ("豈", "Han"), ("々", "Han"), ("の", "Kana"), ("ツ", "Kana"),
     ("ж", "Cyrillic"), ("한", "Hangul"), ("ب", "Arabic"), ("א", "Hebrew"), ("क", "Devanagari"), ("ก", "Thai"), ("π", "Greek"),
     ("ბ", "Georgian"), ("ա", "Armenian"), ("ሀ", "Ethiopic"), ("ཀ", "Tibetan"), ("ꀀ", "Other"), ("𠀀", "Han")],
)  # fmt: skip
def test_letters_are_known(char: str, script: str) -> None:
    assert script_of(char) == script


@pytest.mark.parametrize("char", "0٣१。、！（「🎉€±°ª"[:-1] + "\u200d\ufe0f\ufffd\n")
def test_digits_punctuation_and_emoji_belong_to_none(char: str) -> None:
    assert script_of(char) is None


def test_stretches_join_words_of_one_script() -> None:
    first, second = scripts.stretches("Open at nine, 上午九点")
    assert (first.script, first.num_words, first.num_letters) == ("Latin", 3, 10)
    assert (second.script, second.start, second.num_letters) == ("Han", 14, 4)


@given(st.text())
def test_words_are_in_order_and_plain_means_latin_only(text: str) -> None:
    found = list(scripts.words(text))
    assert all(one.stop <= two.start for one, two in pairwise(found))
    assert scripts.is_plain(text) == all(word.script == "Latin" for word in found)
