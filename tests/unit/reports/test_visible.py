import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from qgate.reports.visible import clip, offset_of, one_line, storable, visible, xml_text

ANY_TEXT = st.text(st.characters(codec=None), max_size=200)
"""Lone surrogates included."""


@given(ANY_TEXT)
def test_nothing_that_acts_or_hides_is_left(text):
    left = {unicodedata.category(character) for character in visible(text) if character not in "\u200c\u200d"}
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(ANY_TEXT)
def test_storable_text_encodes_and_valid_text_is_untouched(text):
    storable(text).encode("utf-8")
    valid = text.encode("utf-8", "ignore").decode()
    assert storable(valid) == valid


@given(ANY_TEXT)
def test_xml_text_parses(text):
    element = etree.Element("a")
    element.text = xml_text(text)
    assert etree.fromstring(etree.tostring(element)).tag == "a"


def test_joined_emoji_and_arabic_stay_readable():
    assert visible("👩\u200d🚀 السلام") == "👩\u200d🚀 السلام"
    assert visible("a\u202eb\x1b[31m\x00\ud800") == "a⟦U+202E⟧b⟦U+001B⟧[31m⟦U+0000⟧⟦U+D800⟧"
    assert visible("a\n\tb") == "a⏎⇥b"
    assert visible("a\n\tb", keep_newlines=True) == "a\n\tb"
    assert one_line(" a\r\n  b\u2028c ") == "a b c"


def test_a_surrogate_pair_is_joined_and_a_lone_one_replaced():
    assert storable("\ud83d\ude00") == "😀"
    assert storable("a\udc00b") == "a\ufffdb"


@given(ANY_TEXT, st.integers(-5, 500), st.integers(3, 60))
def test_a_clip_is_one_line_and_shows_the_offset(text, start, width):
    shown = clip(text, start, width)
    assert "\n" not in shown
    assert shown
    if 0 <= start < len(text):
        assert visible(text[start]) in shown


def test_a_clip_marks_what_it_left_out():
    assert clip("abcdefghij", 9, 3) == "…ij"
    assert clip("abcdefghij", 0, 3) == "abc…"
    assert clip("abc", 2, 9) == "abc"
    assert clip(None, 0, 9) == "(no answer)"
    assert clip("", 0, 9) == "(empty)"


def test_offsets_are_read_from_places():
    assert offset_of("char 312: repetition_loop") == 312
    assert offset_of("token 3") == 0
    assert offset_of("") == 0
