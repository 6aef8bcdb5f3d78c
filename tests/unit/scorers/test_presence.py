"""`contains_all` and `ordered`, in every language of the shipped sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate import scorers
from qgate.scorers.presence import longest_rising

contains = scorers.load("contains_all")
ordered = scorers.load("ordered")


@pytest.mark.parametrize(
    ("language", "value", "right", "wrong"),
    [
        ("en", "Marlow", "It was Marlow's idea.", "It was in Marlowe."),
        ("en", "North Quay", "She waited at the\nnorth  QUAY.", "North of the quay."),
        ("en", "42", "There are 42.", "There are 42.5 or 1,042 or 420."),
        ("en", "don't", "I don’t know.", "I do not know."),
        ("zh", "白鹭号", "答案是白鹭号。", "答案是白鹤号。"),
        ("zh", "python", "我用Python写的", "我用Pythonic的写法"),
        ("zh", "42", "一共４２个", "一共142个"),
        ("ja", "パン", "焼きたてのパンです", "バンです"),
        ("ja", "ﾛﾎﾞｯﾄ", "ロボットが来た", "ロケットが来た"),
        ("ar", "القاهرة", "زرت القاهره أمس", "زرت الإسكندرية"),
        ("ar", "قاهرة", "ذهب والقاهرة بعيدة", "هذا قاهرون"),
        ("ar", "أحمد", "جاء اَحْمَد", "جاء محمود"),
        ("ru", "ёлка", "Это ЕЛКА.", "Это ёлками."),
        ("es", "muelle", "El Muelle, al norte", "los muelles"),
        ("th", "แมว", "มีแมวสีเทา", "มีหมาสีเทา"),
    ],
)
def test_a_value_is_found_as_a_word(language: str, value: str, right: str, wrong: str) -> None:
    assert contains(right, {"values": [value]}, language) == 1.0
    assert contains(wrong, {"values": [value]}, language) == 0.0
    assert contains(right, {"values": ["zzz"], "none_of": [value]}, language) == 0.0


def test_the_score_is_the_share_present_and_nothing_with_a_forbidden_one() -> None:
    args = {"values": ["red", "blue", ["grey", "gray"], "green"]}
    assert contains("Red and gray.", args, "en") == 0.5
    assert contains("Red and gray, never pink.", args | {"none_of": ["pink"]}, "en") == 0.0
    assert contains("Red and gray, pinkish.", args | {"none_of": ["pink"]}, "en") == 0.5


def test_without_normalising_case_and_width_matter() -> None:
    args = {"values": ["Blue"], "normalize": False}
    assert contains("Blue", args, "en") == 1.0
    assert contains("blue", args, "en") == 0.0
    assert contains("Ｂｌｕｅ", args, "en") == 0.0


@pytest.mark.parametrize(
    ("language", "values", "right", "wrong"),
    [
        ("en", ["Alder", "Bramble", "Corvin"], "1. Alder 2. Bramble 3. Corvin", "Corvin, Bramble, Alder"),
        ("zh", ["青杉号", "白鹭号", "远帆号"], "青杉号、白鹭号、远帆号", "远帆号、白鹭号、青杉号"),
        ("ja", ["傘", "庭", "猫"], "傘、庭、猫", "猫、庭、傘"),
        ("ar", ["النورس", "المرجان", "الشراع"], "النورس ثم المرجان ثم الشراع", "الشراع ثم المرجان ثم النورس"),
        ("ru", ["зонт", "сад", "кот"], "зонт, сад, кот", "кот, сад, зонт"),
        ("es", ["pan", "horno", "mapa"], "pan, horno y mapa", "mapa, horno y pan"),
        ("th", ["ร่ม", "เตา", "แมว"], "ร่ม เตา แมว", "แมว เตา ร่ม"),
    ],
)
def test_order(language: str, values: list[str], right: str, wrong: str) -> None:
    assert ordered(right, {"values": values}, language) == 1.0
    assert ordered(wrong, {"values": values}, language) == pytest.approx(1 / 3)
    assert ordered("…", {"values": values}, language) == 0.0


def test_a_missing_value_costs_its_share_only() -> None:
    assert ordered("a c d", {"values": ["a", "b", "c", "d"]}, "en") == 0.75


@given(st.lists(st.integers(0, 30), max_size=12))
def test_longest_rising_agrees_with_the_quadratic_recurrence(numbers: list[int]) -> None:
    best: list[int] = []
    for at, number in enumerate(numbers):
        best.append(1 + max((best[i] for i in range(at) if numbers[i] < number), default=0))
    assert longest_rising(numbers) == max(best, default=0)
