"""`enumeration` and `free_text`: whole, cut short, looped, in every language of the shipped sets."""

from __future__ import annotations

import pytest

from qgate import scorers

enumeration = scorers.load("enumeration")
free_text = scorers.load("free_text")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "1. Open it\n2) Look inside\n**3.** Close it"),
        ("en", "Step 1: open\nStep 2 - look\n### Step 3: close"),
        ("zh", "第一步：打开\n第二步：看看\n第三步：关上"),
        ("zh", "一、打开\n二、看看\n三、关上"),
        ("zh", "步骤1：打开\n步骤2：看看\n步骤3：关上"),
        ("ja", "ステップ1：開ける\nステップ2：見る\nステップ3：閉める"),
        ("ar", "الخطوة ١: افتح\nالخطوة ٢: انظر\nالخطوة ٣: أغلق"),
        ("ru", "Шаг 1: открыть\nШаг 2: посмотреть\nШаг 3: закрыть"),
        ("es", "Paso 1: abrir\nPaso 2: mirar\nPaso 3: cerrar"),
        ("th", "ขั้นตอนที่ 1: เปิด\nขั้นตอนที่ 2: ดู\nขั้นตอนที่ 3: ปิด"),
    ],
)
def test_every_way_of_numbering(language: str, text: str) -> None:
    assert enumeration(text, {"count": 3}, language) == 1.0
    assert enumeration("\n".join(text.splitlines()[:1]), {"count": 3}, language) == pytest.approx(1 / 3)


def steps(numbers: list[int]) -> str:
    return "\n".join(f"{number}. Do the thing called {number * 7}" for number in numbers)


@pytest.mark.parametrize(
    ("numbers", "score"),
    [
        (list(range(1, 61)), 1.0),
        (list(range(1, 31)), 0.5),
        ([], 0.0),
        (list(range(1, 121)), 0.5),
        ([1, 2, 3] * 20, 3 / 60),
        (list(range(60, 0, -1)), 1 / 60),
        ([number for number in range(1, 61) if number != 30], 59 / 60),
    ],
)
def test_missing_surplus_looped_and_reversed_entries(numbers: list[int], score: float) -> None:
    assert enumeration(steps(numbers), {"count": 60}, "en") == pytest.approx(score)


def test_a_loop_that_counts_on_is_still_a_loop() -> None:
    text = "\n".join(f"{number}. Check the valve again." for number in range(1, 61))
    assert enumeration(text, {"count": 60}, "en") == pytest.approx(1 / 60)
    assert enumeration(text, {"count": 60, "distinct": False}, "en") == 1.0


STORIES = {
    "en": "The keeper climbed the stairs before dawn and lit the old lamp while gulls slept on the rail below him.",
    "zh": "守塔人天亮前爬上楼梯点亮了那盏旧灯而海鸥还在下面的栏杆上睡觉远处的船慢慢靠近码头。",
    "ja": "守り人は夜明け前に階段を上り古い灯りをつけたが海鳥たちはまだ手すりの上で眠っていた。",
    "ar": "صعد الحارس الدرج قبل الفجر وأضاء المصباح القديم بينما كانت النوارس نائمة على السياج في الأسفل.",
    "ru": "Смотритель поднялся по лестнице до рассвета и зажёг старую лампу пока чайки спали внизу на перилах.",
    "es": "El guardián subió la escalera antes del alba y encendió la vieja lámpara mientras las gaviotas dormían abajo.",
    "th": "คนเฝ้าประภาคารปีนบันไดก่อนรุ่งสางและจุดตะเกียงเก่าขณะที่นกนางนวลยังหลับอยู่บนราวข้างล่าง",
}


@pytest.mark.parametrize("language", sorted(STORIES))
def test_length_counts_only_what_is_new_and_in_the_script(language: str) -> None:
    story = STORIES[language]
    other = STORIES["ru" if language != "ru" else "en"]
    assert free_text(story, {"length": 12}, language) == 1.0
    once = free_text(story, {"length": 200}, language)
    assert 0.0 < once < 0.5
    assert free_text(" ".join([story] * 50), {"length": 200}, language) < 2 * once
    assert free_text(other, {"length": 12}, language) == 0.0


def test_required_phrases_scale_the_score() -> None:
    assert free_text(STORIES["en"], {"length": 10, "values": ["keeper", "harbour"]}, "en") == 0.5
