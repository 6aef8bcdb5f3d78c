from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.judge.observe import Beside, Place, came, observe
from qgate.schemas.answers import Answer, Sampling
from qgate.schemas.evalset import Item, Message, ScorerUse
from qgate.schemas.evidence import Row

GREEDY = Sampling(
    temperature=0, top_p=1, top_k=-1, min_p=0, repetition_penalty=1, presence_penalty=0, frequency_penalty=0,
    max_tokens=64, seed=7,
)  # fmt: skip
ITEM = Item(
    id="tea-1",
    messages=(
        Message(role="system", content="Be brief."),
        Message(role="user", content="How long does green tea steep?"),
    ),
    kind="question",
    language="en",
    difficulty=2,
    scorer=ScorerUse(name="contains"),
    slices={"noise": "clean"},
    twin_of="tea-0",
)
LOOP = "Steep it. " + "Please keep the receipt. " * 20


def answer(text: str | None, **fields: Any) -> Answer:
    return Answer(**{"id": "a", "text": text, "finish_reason": "stop", "status": "ok", "latency_s": 0.5, **fields})


def row(
    ours: Answer, baseline: Answer | None = None, reference: Answer | None = None, score: float | None = 1.0
) -> Row:
    place = Place("w4", 0, "questions", "greedy", ITEM, GREEDY)
    return observe(place, ours, Beside(baseline, reference or baseline), score)


def test_a_row_says_where_the_answer_stands() -> None:
    found = row(answer("Two minutes.", prompt_tokens=9, completion_tokens=3))
    assert (found.variant, found.replicate, found.pair) == ("w4", 0, ("questions", "tea-1", "greedy", 7))
    assert (found.kind, found.language, found.difficulty, found.slices) == ("question", "en", 2, {"noise": "clean"})
    assert (found.family, found.temperature, found.score, found.text) == ("tea-0", 0, 1.0, "Two minutes.")
    assert (found.prompt_tokens, found.completion_tokens, found.latency_s) == (9, 3, 0.5)


@pytest.mark.parametrize("status", ["timeout", "error"])
def test_what_never_came_is_neither_scored_nor_compared_nor_searched(status: str) -> None:
    lost = answer(None, status=status, finish_reason=None, error="gone")
    found = row(lost, baseline=answer("Two minutes."))
    assert not came(lost)
    assert (found.score, found.defects, found.identical, found.similarity) == (None, (), None, None)
    assert (found.error, found.ending) == ("gone", f"{status}: gone")
    beside_lost = row(answer("Two minutes."), baseline=lost)
    assert (beside_lost.score, beside_lost.identical, beside_lost.first_divergence) == (1.0, None, None)


def test_of_an_error_its_first_line_is_kept_in_brief() -> None:
    errors = (None, "", "  \n ", "HTTP 500: boom\n  at line 1", "x" * 5000)
    found = [row(answer(None, status="error", finish_reason=None, error=error)).error for error in errors]
    assert found == [None, None, None, "HTTP 500: boom", "x" * 200]


@pytest.mark.parametrize("reason", [None, "length", "MAX_TOKENS"])
def test_a_truncated_answer_is_scored_and_cut(reason: str | None) -> None:
    found = row(answer("Two minutes, or", status="truncated", finish_reason=reason), baseline=answer("Two minutes."))
    assert found.score == 1.0
    assert [hit.name for hit in found.defects] == ["truncation"]


def test_the_reference_itself_is_compared_with_nothing() -> None:
    found = row(answer("Two minutes."))
    assert (found.identical, found.first_divergence, found.similarity, found.excused) == (None, None, None, ())


def test_token_ids_decide_where_both_have_them() -> None:
    same_text = row(answer("x", token_ids=(1, 2, 3)), baseline=answer("x", token_ids=(1, 9, 3)))
    assert (same_text.identical, same_text.first_divergence, same_text.similarity) == (False, 1, 1.0)
    longer = row(answer("x", token_ids=(1, 2, 3)), baseline=answer("x", token_ids=(1, 2)))
    assert (longer.identical, longer.first_divergence) == (False, 2)
    equal = row(answer("x", token_ids=(1, 2)), baseline=answer("x", token_ids=(1, 2)))
    assert (equal.identical, equal.first_divergence, equal.similarity) == (True, None, 1.0)


def test_text_decides_where_one_has_no_ids() -> None:
    found = row(answer("two cups", token_ids=(1,)), baseline=answer("two mugs"))
    assert (found.identical, found.first_divergence) == (False, 4)
    assert found.similarity == pytest.approx(2 * len("two us") / 16)


def test_similarity_of_long_texts_is_bounded_work() -> None:
    found = row(answer("ab" * 300_000), baseline=answer("ba" * 300_000))
    assert found.similarity is not None and found.similarity > 0.99


def test_a_replicate_is_compared_with_its_own_first_but_excused_by_the_baseline() -> None:
    mine = answer(LOOP, finish_reason="length")
    found = row(mine, baseline=answer("Well. " + LOOP, finish_reason="length"), reference=mine)
    assert (found.identical, found.defects, found.excused) == (True, (), ("repetition_loop",))


def test_what_only_the_variant_does_is_its_fault() -> None:
    found = row(answer(LOOP, finish_reason="length"), baseline=answer("Two minutes."))
    assert {hit.name for hit in found.defects} == {"repetition_loop", "truncation"}
    assert found.excused == ()


def test_every_message_of_the_prompt_may_ask_for_it() -> None:
    asked = ITEM.model_copy(update={"messages": (Message(role="user", content="Say 'ha' 50 times."),)})
    place = Place("w4", 0, "questions", "greedy", asked, GREEDY)
    assert observe(place, answer("ha " * 50), Beside(None, None), 1.0).defects == ()


def test_logprobs_and_tool_calls_reach_the_detectors() -> None:
    (hit,) = row(answer("Two", logprobs=(-0.1, None))).defects
    assert hit.name == "nonfinite_logprob"
    assert row(answer(None, finish_reason="tool_calls", tool_calls=1)).defects == ()


@given(st.text(max_size=60), st.text(max_size=60))
def test_agreement_is_symmetric_and_in_range(ours: str, theirs: str) -> None:
    there = row(answer(ours), baseline=answer(theirs))
    back = row(answer(theirs), baseline=answer(ours))
    assert there.similarity is not None and 0 <= there.similarity <= 1
    assert there.similarity == pytest.approx(back.similarity)
    assert (there.identical, there.first_divergence) == (back.identical, back.first_divergence)
    assert there.identical == (ours == theirs) == (there.first_divergence is None)
