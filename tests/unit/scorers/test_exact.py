"""`exact` and `choice`, in every language of the shipped sets."""

from __future__ import annotations

import pytest

from qgate import scorers

exact = scorers.load("exact")
choice = scorers.load("choice")


@pytest.mark.parametrize(
    ("language", "value", "right", "wrong"),
    [
        ("en", "blue", ' **"Blue."** ', "It is blue."),
        ("zh", "蓝色", "「蓝色」。", "是蓝色"),
        ("ja", "青", "青。", "青です"),
        ("ar", "أزرق", "ازرق.", "اللون أزرق"),
        ("ru", "жёлтый", "Желтый!", "цвет жёлтый"),
        ("es", "azul", "¡Azul!", "es azul"),
        ("th", "สีฟ้า", " สีฟ้า ", "คำตอบคือสีฟ้า"),
        ("en", "07:10", "07:10.", "at 07:10"),
    ],
)
def test_the_whole_answer_is_the_value(language: str, value: str, right: str, wrong: str) -> None:
    assert exact(right, {"values": ["other", value]}, language) == 1.0
    assert exact(wrong, {"values": ["other", value]}, language) == 0.0
    assert exact("!?…", {"values": [value]}, language) == 0.0


OPTIONS = {"answer": "B", "options": ["a red lamp", "a blue lamp", "a green lamp"]}


@pytest.mark.parametrize(
    "text",
    ["B", "b", "(B)", "**B**", "B. a blue lamp", "B) because A is red", "The answer is B.", "Answer: B", "答案是B", "选B", "Ｂ",
     "В", "答案：（B）", "Ответ: B", "คำตอบคือ B",
     "B is correct.", "**B** is the right one", "我选择B", "B是正确的", "La opción B", "Вариант B верный",
     "It is a blue lamp.", "A BLUE  lamp",
     "B\n\nExplanation: A is red, C is green.", "The red one is out.\n\nB", "```text\nB\n```", "Ⓑ", "I choose B.", "It's B",
     "B is the answer, not A.", "我认为答案是 B，因为A是红色的", "B选项", "正解はBです", "Bが正しい", "Ответ — B", "ตอบ B",
     "La respuesta es la B.", "A\nB\nC\nAnswer: B", "A. a red lamp\nB. a blue lamp\nC. a green lamp\n\nB", "B选项正确",
     "正确答案是B。A选项错误，C选项也错误。", 'The word "A" fits none, the answer is B', "I can't choose A, I choose B"],
)  # fmt: skip
def test_the_right_option(text: str) -> None:
    assert choice(text, OPTIONS, "en") == 1.0


@pytest.mark.parametrize(
    "text",
    ["A", "C.", "D", "", "Because", "A or B", "The answer is A. The answer is B.", "a red lamp or a blue lamp", "lamp",
     "answer is C, not the blue one", "A is correct", "🙂", "A\nB\nC", "A, B", "It is not B.", "I would not choose B", "不是B",
     "不选B", "答えはBではない", "La respuesta no es B", "B is wrong", "B或C",
     "B\nA", "B\nC\nB\nC", "B选项错误", "Bが正しくない", "Bが正解ではない", "I can't choose B", "I cannot go with B", "不应选B"],
)  # fmt: skip
def test_another_option_or_none(text: str) -> None:
    assert choice(text, OPTIONS, "en") == 0.0


def test_the_options_said_again_pick_none() -> None:
    listed = "\n".join(f"{letter}. {option}" for letter, option in zip("ABC", OPTIONS["options"], strict=True))
    assert choice(listed, OPTIONS | {"answer": "A"}, "en") == 0.0


@pytest.mark.parametrize(
    ("letters", "answer", "right", "wrong"),
    [
        ("АБВГ", "Б", "Ответ: Б", "Ответ: В"),
        ("أبجد", "ب", "ب.", "أ."),
        ("กขคง", "ข", "ข", "ก"),
        ("甲乙丙丁", "乙", "选乙", "选甲"),
    ],
)
def test_other_letters(letters: str, answer: str, right: str, wrong: str) -> None:
    args = {"answer": answer, "options": ["one", "two", "three"], "letters": letters}
    assert choice(right, args, "ru") == 1.0
    assert choice(wrong, args, "ru") == 0.0
