"""Normalisation, segmentation and language by script: what every scorer stands on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.scorers import segment
from qgate.scorers.languages import is_language
from qgate.scorers.novelty import num_fresh, says_something
from qgate.scorers.text import find, normalise


@given(st.text(max_size=200))
def test_normalising_twice_changes_nothing_that_matters(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(st.text(alphabet="ab ,.éж中ไ٣", max_size=40), st.text(alphabet="abж中", min_size=1, max_size=3))
def test_find_gives_only_real_places(text: str, phrase: str) -> None:
    assert all(text.startswith(phrase, at) for at in find(text, phrase))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("One. Two! Three?", 3),
        ("Dr. Marlow arrived at 3.15 p.m. with J. Bell.", 1),
        ('She said "Go." Then she left.', 2),
        ("It costs 3.5 euros. Really...", 2),
        ("一句。两句！三句？", 3),
        ("他说：“走吧。”然后走了。", 2),
        ("一文です。二文です。", 2),
        ("جملة أولى. جملة ثانية؟", 2),
        ("Раз. Два, т.е. снова два!", 2),
        ("¿Uno? ¡Dos!", 2),
        ("- one\n- two\n- three", 3),
        ("<<A Title.>>\nOnly this counts.", 1),
        ("# Heading\nOnly this counts.", 1),
        ("", 0),
        ("!!! ...", 0),
    ],
)
def test_sentences(text: str, number: int) -> None:
    assert len(segment.sentences(text)) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("It's a ten-year-old lamp, isn't it?", 6),
        ("灯塔亮了，两次。", 6),
        ("用Python写3行", 5),
        ("ロボット、来た！", 6),
        ("ตลาดเช้า", 7),
        ("وصل الحارس", 2),
        ("ёлка — дерево", 2),
        ("**bold** word", 2),
        ("… !", 0),
    ],
)
def test_words(text: str, number: int) -> None:
    assert len(segment.words(text)) == number


def test_bullets_numbers_lines_and_paragraphs() -> None:
    assert len(segment.bullets("- a\n* b\n+ c\n• d\n・ e\n-no\n**f**\n---")) == 5
    assert len(segment.bullets("・りんご\n•项目\n-\u3000项\n\u200f- سطر\n—¿Qué?\n•")) == 4
    assert segment.bullets("・・・\n○○さん\n●●●") == []
    assert segment.numbered("1. a\n2) b\n3、c\n**4.** d\nno 5.\n2026 was") == [1, 2, 3, 4]
    assert segment.lines(" a \n\n b\r\nc") == ["a", "b", "c"]
    assert segment.paragraphs("a\nb\n\n \nc\r\n\r\nd") == ["a\nb", "c", "d"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The keeper lit the lamp in the tower.", "en"),
        ("El guardián encendió la lámpara de la torre.", "es"),
        ("守塔人点亮了灯。", "zh"),
        ("守り人が灯りをつけた。", "ja"),
        ("أضاء الحارس المصباح.", "ar"),
        ("Смотритель зажёг лампу.", "ru"),
        ("คนเฝ้าจุดตะเกียง", "th"),
        ("Der Wärter hat die Lampe im Turm nicht gelöscht.", "de"),
        ("Le gardien a allumé la lampe dans la tour.", "fr"),
    ],
)
def test_each_language_is_told_from_all_others(text: str, language: str) -> None:
    assert {lang for lang in ("en", "es", "zh", "ja", "ar", "ru", "th", "de", "fr") if is_language(text, lang)} == {
        language
    }


@pytest.mark.parametrize("text", ["", "123", "!?", "xqz vbn klm wrt pqs dfg hjk zzz"])
def test_nothing_and_gibberish_are_no_language(text: str) -> None:
    assert not any(is_language(text, language) for language in ("en", "es", "zh", "ja", "ar", "ru", "th"))


@given(st.lists(st.sampled_from("abc"), max_size=40), st.integers(1, 6))
def test_fresh_units_never_exceed_the_units(units: list[str], span: int) -> None:
    assert 0 <= num_fresh(units, span) <= len(units)
    assert num_fresh(units * 2, span) <= num_fresh(units, span) + min(len(units), span)


def test_what_says_something() -> None:
    assert says_something("tick " * 7)
    assert not says_something("tick " * 30)
    assert not says_something("".join(f"{at}. Check the valve again.\n" for at in range(30)))
    assert says_something(" ".join(map(str, range(200))))
    assert not says_something("！！！")
    assert not says_something("好的" * 40)
    assert says_something("The keeper climbed the stairs before dawn and lit the old lamp. " * 2)
