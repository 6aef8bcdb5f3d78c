"""`number`: figures, numerals and words of every language of the shipped sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate import scorers
from qgate.scorers.numerals import han_value

number = scorers.load("number")


@pytest.mark.parametrize(
    ("language", "text", "value"),
    [
        ("en", "There are 42 lamps.", 42),
        ("en", "**42**", 42),
        ("en", "First 7, then 9, so 42", 42),
        ("en", "It holds 1,234,567.5 litres", 1234567.5),
        ("en", "It was -3 degrees", -3),
        ("en", "−3", -3),
        ("en", "pages 3-5", 5),
        ("en", "forty-two", 42),
        ("en", "Two hundred and forty-two thousand and six.", 242_006),
        ("en", "1'234", 1234),
        ("zh", "一共有４２盏", 42),
        ("zh", "一共四十二盏", 42),
        ("zh", "两千零五", 2005),
        ("zh", "两百五", 250),
        ("zh", "壹仟贰佰零伍", 1205),
        ("zh", "3万人", 30_000),
        ("zh", "1.5亿", 150_000_000),
        ("zh", "一万二千三百四十五", 12_345),
        ("zh", "二〇二六年", 2026),
        ("zh", "十二个，这是一个总数", 12),
        ("zh", "一", 1),
        ("ja", "四十二個です", 42),
        ("ja", "１，２３４席", 1234),
        ("ar", "٤٢ مصباحا", 42),
        ("ar", "١٬٢٣٤", 1234),
        ("ar", "٣٫٥", 3.5),
        ("ar", "سبعة", 7),
        ("ar", "واحد وعشرون", 21),
        ("ru", "Всего 1 234 места", 1234),
        ("ru", "3,5 метра", 3.5),
        ("ru", "сорок два", 42),
        ("ru", "двести тысяч", 200_000),
        ("es", "1.234 plazas", 1234),
        ("es", "3,5 metros", 3.5),
        ("es", "doscientas cuarenta y dos", 242),
        ("th", "มี ๔๒ ดวง", 42),
        ("th", "สี่สิบสองดวง", 42),
        ("th", "ยี่สิบเอ็ด", 21),
    ],
)
def test_the_stated_number(language: str, text: str, value: float) -> None:
    assert number(text, {"value": value}, language) == 1.0
    assert number(text, {"value": value + 1}, language) == 0.0


@pytest.mark.parametrize("text", ["", "none", "K42", "see 2026.11.29 and 7", "42" * 30, "...", "四" * 60])
def test_no_such_number(text: str) -> None:
    assert number(text, {"value": 42}, "en") == 0.0


def test_which_of_several_counts() -> None:
    assert number("7 of 42", {"value": 7, "pick": "first"}, "en") == 1.0
    assert number("7 of 42", {"value": 42, "pick": "only"}, "en") == 0.0
    assert number("42, I say 42", {"value": 42, "pick": "only"}, "en") == 1.0


def test_tolerance_is_absolute_and_inclusive() -> None:
    assert number("3.2", {"value": 3.1, "tolerance": 0.1}, "en") == 1.0
    assert number("3.21", {"value": 3.1, "tolerance": 0.1}, "en") == 0.0


DIGITS = "零一二三四五六七八九"


def chinese(value: int) -> str:
    """`value` below a hundred million in Chinese numerals, written by the textbook rule."""
    if value >= 10_000:
        rest = value % 10_000
        return chinese(value // 10_000) + "万" + ("零" if 0 < rest < 1000 else "") + (chinese(rest) if rest else "")
    parts, gap = "", False
    for scale, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = value // scale % 10
        if digit:
            parts += ("零" if gap and parts else "") + DIGITS[digit] + unit
        gap = digit == 0
    return parts or DIGITS[0]


@given(st.integers(0, 99_999_999))
def test_chinese_numerals_are_read_as_they_are_written(value: int) -> None:
    assert han_value(chinese(value)) == value


@given(st.integers(0, 10**12))
def test_grouped_figures_are_read_as_they_are_written(value: int) -> None:
    assert number(f"It is {value:,}.", {"value": value}, "en") == 1.0
    assert number(f"Son {value:,}".replace(",", "."), {"value": value}, "es") == 1.0
    assert number(f"Их {value:,}".replace(",", "\u00a0"), {"value": value}, "ru") == 1.0
