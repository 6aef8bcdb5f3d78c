"""What counts as the failure, by default and where the incident says."""

from __future__ import annotations

from typing import Any

import pytest

from qgate import scorers
from qgate.judge.recognise import filed_answer, recogniser
from qgate.judge.request_body import cut_at_stop
from qgate.schemas.answers import Answer
from qgate.schemas.incident import Incident
from qgate.schemas.repro import Try

LOOP = "The sea is wide. " + "and the sea is wide " * 20
SALAD = "The сло ปร sea ㅋㅋ queſ ዐ is ðŸ wide � ปร сло"
GOOD = "The sea is wide and deep, and ships cross it."
ASKED = {"messages": [{"role": "user", "content": "Tell me of the sea."}]}


def incident(answer: Any = None, body: dict[str, Any] | None = None, **how: Any) -> Incident:
    return Incident.model_validate(
        {
            "kind": "incident", "version": 1, "request": {"body": body or ASKED}, "answer": answer,
            "candidate": {"url": "http://x"}, "recognise": how,
        }
    )  # fmt: skip


def judged(made: Incident, text: str | None, **fields: Any) -> Try:
    values: dict[str, Any] = {"id": "1", "status": "ok", "finish_reason": "stop", "latency_s": 0.1, **fields}
    return recogniser(made, scorers.load).judge(Answer(text=text, **values), made.request.body, 7)


@pytest.mark.parametrize(
    ("answer", "came", "failed"),
    [
        (None, LOOP, True),
        (None, SALAD, True),
        (None, GOOD, False),
        (LOOP, LOOP.replace("wide", "blue"), True),
        (LOOP, SALAD, False),
        (SALAD, "The sea � is � wide � and � deep �", True),
        (GOOD, GOOD, True),
        (GOOD, GOOD + " Yes.", True),
        (GOOD, "I do not know.", False),
        (GOOD, LOOP, False),
        ({"choices": [{"message": {"content": LOOP}, "finish_reason": "length"}]}, LOOP, True),
        ("", "", True),
        ("", GOOD, False),
    ],
)
def test_by_default_the_family_of_the_filed_defects_or_likeness(answer: Any, came: str, failed: bool) -> None:
    found = judged(incident(answer), came)
    assert (found.failed, bool(found.why)) == (failed, failed)
    assert found.seed == 7


def test_what_is_named_decides_alone() -> None:
    assert judged(incident(regex=r"\bwide\b"), GOOD).failed
    assert not judged(incident(regex="narrow"), LOOP).failed
    assert judged(incident(finish_reason="length"), GOOD, finish_reason="length", status="truncated").failed
    assert not judged(incident(finish_reason="length"), LOOP).failed
    assert judged(incident(defects=["repetition_loop"]), LOOP).failed
    assert not judged(incident(defects=["mojibake"]), LOOP).failed
    assert judged(incident(answer=GOOD, likeness=0.9), GOOD).failed
    assert not judged(incident(answer=GOOD, likeness=0.9), LOOP).failed


def test_a_scorer_decides_by_its_score() -> None:
    how = {"scorer": {"name": "contains_all", "args": {"values": ["ships"]}}}
    assert not judged(incident(**how), GOOD).failed
    found = judged(incident(**how), "Nothing.")
    assert (found.failed, found.why) == (True, "score 0.00")


def test_a_try_that_did_not_come_counts_for_nothing_unless_that_is_the_failure() -> None:
    gone = judged(incident(), None, status="error", error="HTTP 500", finish_reason=None)
    assert (gone.failed, gone.came, gone.why) == (False, False, "HTTP 500")
    failed = judged(incident(error=True), None, status="timeout", error="no answer", finish_reason=None)
    assert (failed.failed, failed.came) == (True, True)
    assert not judged(incident(error=True), GOOD).failed


def test_text_behind_a_stop_string_is_not_looked_at() -> None:
    body = {**ASKED, "stop": ["###"]}
    assert not judged(incident(body=body), GOOD + "###" + LOOP).failed
    assert cut_at_stop("a#b##c", ("##", "#")) == "a"
    assert cut_at_stop("abc", ("", "x")) == "abc"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"choices": [{"text": "a"}]}, "a"),
        ({"choices": [{"message": {"content": None}}]}, None),
        ({"message": {"content": "a"}}, "a"),
        ({}, None),
        (None, None),
        ("a", "a"),
    ],
)
def test_the_filed_text(answer: Any, text: str | None) -> None:
    assert filed_answer(answer).text == text


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (incident(LOOP), "one of the defects repetition_loop, token_flood, or at least 80% like the filed answer"),
        (incident(GOOD), "at least 80% like the filed answer"),
        (incident(regex="a+", error=True), "the pattern `a+`, or no answer at all"),
    ],
)
def test_how_it_is_recognised_is_said(made: Incident, said: str) -> None:
    assert recogniser(made, scorers.load).in_words() == said
