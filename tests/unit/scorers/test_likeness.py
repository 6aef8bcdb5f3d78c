"""`similarity`, `chrf`, `bleu`, `ter`, `rouge` and `token_f1`: same, near and far texts in every language of the shipped sets."""

from __future__ import annotations

import pytest

from qgate import scorers

TEXTS = {
    "en": ("The keeper lit the old lamp before dawn.", "The keeper lit an old lamp before noon.", "Bread is sold out."),
    "zh": ("守塔人在天亮之前点亮了旧灯。", "守塔人在天黑之前点亮了旧灯。", "面包卖完。"),
    "ja": ("守り人は夜明け前に古い灯りをつけた。", "守り人は夕暮れ前に古い灯りをつけた。", "パン屋。"),
    "ar": ("أضاء الحارس المصباح القديم قبل الفجر.", "أضاء الحارس المصباح الجديد قبل الفجر.", "نفد خبز."),
    "ru": ("Смотритель зажёг старую лампу до рассвета.", "Смотритель зажёг новую лампу до рассвета.", "Хлеб."),
    "es": (
        "El guardián encendió la vieja lámpara antes del alba.",
        "El guardián encendió la lámpara antes del alba.",
        "Pan.",
    ),
    "th": ("คนเฝ้าประภาคารจุดตะเกียงเก่าก่อนรุ่งสาง", "คนเฝ้าประภาคารจุดตะเกียงใหม่ก่อนรุ่งสาง", "ปลา"),
}


@pytest.mark.parametrize("name", ["similarity", "chrf", "bleu", "rouge", "token_f1"])
@pytest.mark.parametrize("language", sorted(TEXTS))
def test_same_beats_near_beats_far(name: str, language: str) -> None:
    scorer = scorers.load(name)
    same, near, far = (scorer(text, {"values": [TEXTS[language][0]]}, language) for text in TEXTS[language])
    assert same == pytest.approx(1.0)
    assert 0.3 < near < 1.0
    assert far < near - 0.2
    assert scorer("", {"values": [TEXTS[language][0]]}, language) == 0.0


def test_the_nearest_reference_counts() -> None:
    assert scorers.load("similarity")("lamp", {"values": ["bread", "lamp"]}, "en") == 1.0


@pytest.mark.parametrize("language", ["en", "ru", "es", "ar"])
def test_fewer_edits_leave_more_of_ter(language: str) -> None:
    scorer = scorers.load("ter")
    same, near, far = (scorer(text, {"values": [TEXTS[language][0]]}, language) for text in TEXTS[language])
    assert same == 1.0
    assert 0.3 < near < 1.0
    assert far < near - 0.2
    assert scorer("", {"values": [TEXTS[language][0]]}, language) == 0.0


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("the cat sat", "a cat sat", 1.0),  # articles do not count
        ("Cat, sat!", "cat sat down", 0.8),  # P 1, R 2/3
        ("dog", "cat", 0.0),
        ("cat cat cat", "cat", 0.5),  # a word counts as often as the reference has it
    ],
)
def test_token_f1_is_squad_s(answer: str, reference: str, expected: float) -> None:
    assert scorers.load("token_f1")(answer, {"values": [reference]}, "en") == pytest.approx(expected)


@pytest.mark.parametrize(("kind", "expected"), [("rouge1", 0.75), ("rouge2", 1 / 3), ("rougeL", 0.5)])
def test_rouge_by_hand(kind: str, expected: float) -> None:
    """Three of four words shared, one of three pairs, two in order."""
    score = scorers.load("rouge")(
        "gunman police killed the", {"values": ["police killed a gunman"], "kind": kind}, "en"
    )
    assert score == pytest.approx(expected)
