"""`constraints`: the share kept, the strict reading, and what keeps nothing."""

from __future__ import annotations

import pytest

from qgate import scorers

constraints = scorers.load("constraints")
CHECKS = {
    "checks": [
        {"name": "punctuation:no_comma"},
        {"name": "change_case:lowercase"},
        {"name": "keywords:existence", "args": {"keywords": ["lamp"]}},
        {"name": "length_constraints:number_sentences", "args": {"min": 2, "max": 2}},
    ]
}


@pytest.mark.parametrize(
    ("text", "share"),
    [("the lamp is lit. we go home.", 1.0), ("The lamp is lit. we go home.", 0.75), ("Hello, you.", 0.0)],
)
def test_the_share_kept_and_the_strict_reading(text: str, share: float) -> None:
    assert constraints(text, CHECKS, "en") == share
    assert constraints(text, CHECKS | {"strict": True}, "en") == (1.0 if share == 1.0 else 0.0)


@pytest.mark.parametrize(
    "text", ["", "...", "lamp " * 200, "the lamp is lit. we go home.\n" + "lamp " * 500, "灯" * 99]
)
def test_nothing_and_loops_keep_nothing(text: str) -> None:
    assert constraints(text, CHECKS, "en") == 0.0


def test_chinese() -> None:
    args = {
        "checks": [{"name": "punctuation:no_comma"}, {"name": "keywords:existence", "args": {"keywords": ["灯塔"]}}]
    }
    assert constraints("灯塔亮了。", args, "zh") == 1.0
    assert constraints("灯塔亮了，船来了。", args, "zh") == 0.5
