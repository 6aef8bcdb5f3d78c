"""`similarity`, `chrf` and `bleu`: same, near and far texts in every language of the shipped sets."""

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


@pytest.mark.parametrize("name", ["similarity", "chrf", "bleu"])
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
