"""Columns to questions: names, templates, letters, ids that stay, and cuts that are parts of larger ones."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate import scorers
from qgate.errors import EvalsetError
from qgate.io import evalset_import, row_map
from qgate.schemas.evalset import ScorerUse

SQUAD = {
    "id": "56be",
    "context": "The well was dug by Tomas.",
    "question": "Who dug the well?",
    "answers": {"text": ["Tomas", "by Tomas"], "answer_start": [20, 17]},
}
MMLU = {"question": "Which is red?", "choices": ["sky", "blood", "grass"], "answer": 1, "subject": "colours"}


def questions(rows: list[dict[str, Any]], *pairs: str, scorer: str = "exact", limit: int | None = None) -> list[Any]:
    data = row_map.to_lines(rows, row_map.parse(pairs, scorer), limit)
    return [json.loads(line) for line in data.splitlines()]


def check(use: ScorerUse) -> None:
    scorers.load(use.name).read(use.args)


def test_columns_fields_inside_them_and_texts_around_them() -> None:
    pairs = ("id=id", "prompt={context}\\nQuestion: {question}", "answer=answers.text", "slices.length=context")
    (found,) = questions([SQUAD], *pairs, scorer="token_f1")
    assert found == {
        "id": "56be",
        "prompt": "The well was dug by Tomas.\nQuestion: Who dug the well?",
        "answer": ["Tomas", "by Tomas"],
        "slices": {"length": "The well was dug by Tomas."},
        "scorer": "token_f1",
    }
    assert row_map.parse(pairs, "token_f1").columns == ["id", "context", "question", "answers"]


def test_multiple_choice_by_letter() -> None:
    pairs = ("prompt={question}\\n{choices:options}\\nAnswer with a letter.", "args.options=choices", "kind=subject")
    (found,) = questions([MMLU], *pairs, "args.answer={answer:letter}", scorer="choice")
    assert found["prompt"] == "Which is red?\nA. sky\nB. blood\nC. grass\nAnswer with a letter."
    assert found["scorer"] == {"name": "choice", "args": {"options": MMLU["choices"], "answer": "B"}}
    imported = evalset_import.read(json.dumps(found).encode(), check)
    assert not imported.faults
    assert scorers.load("choice")("It is B.", imported.items[0].scorer.args, "en") == 1


def test_a_value_that_is_missing_is_the_row_s_fault() -> None:
    lines = row_map.to_lines([{"q": "Why?", "a": None}], row_map.parse(["prompt=q", "answer=a"], "exact"), None)
    (fault,) = evalset_import.read(lines, check).faults
    assert (fault.line, fault.reason) == (1, "`answer` is missing: the scorer `exact` needs it")


@pytest.mark.parametrize(
    ("pairs", "scorer", "message", "advice"),
    [
        (["prompt"], "exact", "not FIELD=COLUMN", "--map prompt=question"),
        (["promt=q"], "exact", "no field `promt`", "did you mean 'prompt'?"),
        (["scorer=q"], "exact", "no field `scorer`", "known: answer"),
        (["prompt=q", "prompt=r"], "exact", "`prompt` is mapped twice", "FIELD={a} {b}"),
        (["prompt={q:leter}"], "exact", "not written as `leter`", "{column:letter}"),
        (["answer=a"], "exact", "no column is mapped to what is asked", "--map prompt=COLUMN"),
        (["prompt=q"], None, "do not say how an answer is scored", "--scorer exact"),
    ],
)
def test_a_map_that_means_nothing_is_refused(pairs: list[str], scorer: str | None, message: str, advice: str) -> None:
    with pytest.raises(EvalsetError, match=message) as caught:
        row_map.parse(pairs, scorer)
    assert advice in str(caught.value.advice)


def test_an_unknown_column_is_refused_with_the_near_match() -> None:
    with pytest.raises(EvalsetError, match="no column 'questoin'") as caught:
        questions([SQUAD], "prompt=questoin", "answer=answers.text")
    assert caught.value.advice == "did you mean 'question'?"


@pytest.mark.parametrize(
    ("path", "advice"),
    [("answers.txt", "it has text, answer_start"), ("question.text", "its values are 'Who dug the well?'")],
)
def test_an_unknown_field_inside_a_column_is_refused(path: str, advice: str) -> None:
    with pytest.raises(EvalsetError, match="has no field") as caught:
        questions([SQUAD], "prompt=question", f"answer={path}")
    assert caught.value.advice == advice


def test_a_column_that_is_empty_in_the_first_row_may_have_fields_in_the_next() -> None:
    found = questions([{**SQUAD, "answers": None}, SQUAD], "prompt=question", "answer=answers.text")
    assert [question.get("answer") for question in found] == [None, ["Tomas", "by Tomas"]]


def test_a_brace_that_does_not_close_is_no_column() -> None:
    with pytest.raises(EvalsetError, match=r"no column 'Q: \{question'") as caught:
        questions([SQUAD], "prompt=Q: {question", "answer=answers.text")
    assert "in a text write {column} as it is" in str(caught.value.advice)


@pytest.mark.parametrize("text", ["{answer:options}", "{question:letter}"])
def test_a_column_that_cannot_be_written_so_is_refused_with_the_row(text: str) -> None:
    with pytest.raises(EvalsetError, match=r"row 1: .* cannot be written of"):
        questions([MMLU], f"prompt={text}", "answer=answer")


ROWS = st.lists(st.integers(0, 30).map(lambda n: {"q": f"What is {n}?", "a": n}), min_size=1, max_size=40)


@given(ROWS, st.randoms(use_true_random=False))
def test_an_item_keeps_its_id_wherever_its_row_stands(rows: list[dict[str, Any]], chance: random.Random) -> None:
    shuffled = list(rows)
    chance.shuffle(shuffled)
    found, again = (questions(each, "prompt=q", "answer=a", scorer="number") for each in (rows, shuffled))
    assert sorted((q["id"], q["prompt"]) for q in found) == sorted((q["id"], q["prompt"]) for q in again)
    assert len({q["id"] for q in found}) == len(rows)


@given(ROWS, st.integers(1, 40), st.integers(1, 40))
def test_a_smaller_limit_is_a_part_of_a_larger_one(rows: list[dict[str, Any]], one: int, other: int) -> None:
    few, many = (
        [q["id"] for q in questions(rows, "prompt=q", "answer=a", scorer="number", limit=limit)]
        for limit in sorted((one, other))
    )
    assert len(few) == min(one, other, len(rows))
    assert few == [name for name in many if name in set(few)]
