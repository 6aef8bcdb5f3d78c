from __future__ import annotations

from xml.etree import ElementTree

from qgate.judge.shrink_rate import measured
from qgate.reports.rate_picture import as_svg, as_text
from qgate.schemas.minimised import Cell, RateMap

MAP = RateMap(
    lengths=((40, 60), (70, 70), (500, 13000)),
    temperatures=(None, 0.0, 0.8),
    cells=(
        Cell(length=0, temperature=2, rate=measured(0, 29)),
        Cell(length=1, temperature=1, rate=measured(3, 3)),
        Cell(length=2, temperature=2, rate=measured(3, 10)),
    ),
)


def test_text_has_the_longest_on_top_and_an_interval_in_each_cell() -> None:
    assert as_text(MAP).splitlines() == [
        "characters  default  T 0               T 0.8",
        "500–13000   ·        ·                 ░ 30 % (7–65)",
        "70          ·        █ 100 % (29–100)  ·",
        "40–60       ·        ·                   0 % (0–12)",
    ]


def test_text_that_would_be_too_wide_has_no_intervals() -> None:
    assert as_text(MAP, 52) == as_text(MAP)
    assert as_text(MAP, 51).splitlines() == [
        "characters  default  T 0      T 0.8",
        "500–13000   ·        ·        ░ 30 %",
        "70          ·        █ 100 %  ·",
        "40–60       ·        ·          0 %",
    ]


def test_svg_is_well_formed_and_says_the_same() -> None:
    root = ElementTree.fromstring(as_svg(MAP))
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "30 % (7–65)" in words
    assert "500–13000" in words
    squares = list(root.iter("{http://www.w3.org/2000/svg}rect"))
    assert sorted(float(square.get("fill-opacity", "")) for square in squares) == [0.05, 0.23, 0.65]


def test_nothing_tried_is_no_picture() -> None:
    empty = RateMap(lengths=(), temperatures=(), cells=())
    assert as_text(empty) == as_svg(empty) == ""
