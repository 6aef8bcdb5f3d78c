"""How long requests can be: a bound that holds, a likely length near the truth."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from qgate.schemas.answers import GenerateRequest
from qgate.sizing.load import bound_tokens, context_tokens, in_flight, likely_tokens
from tests.unit.engines import jobs


def said(text: str, **changes: Any) -> GenerateRequest:
    fields: dict[str, Any] = {"messages": jobs.messages(text), "sampling": jobs.sampling(max_tokens=1)}
    return GenerateRequest(id="set/1/warm/1", **(fields | changes))


@given(st.text(max_size=400))
def test_the_bound_holds_for_a_token_a_byte(text: str) -> None:
    assert likely_tokens(said(text)) <= bound_tokens(said(text))
    assert bound_tokens(said(text)) > len(text.encode())


def test_likely_lengths_are_near_what_tokenizers_say() -> None:
    english = "The dog slept behind the barn all afternoon and would not be moved. " * 40
    assert 40 * 15 <= likely_tokens(said(english)) <= 40 * 15 * 1.8  # 15 tokens a sentence in most vocabularies
    assert likely_tokens(said("犬は午後ずっと納屋の後ろで寝ていた。")) == 8 + 18 + 1


def test_the_context_is_rounded_up_so_that_keys_stay() -> None:
    assert context_tokens(jobs.requests(3, max_tokens=64)) == 2048
    assert context_tokens(jobs.requests(3, max_tokens=4000)) == 8192
    assert context_tokens(jobs.requests(3, max_tokens=4100)) == 8192


def test_only_the_longest_of_the_heaviest_arm_are_in_flight() -> None:
    light, heavy = jobs.requests(40, max_tokens=64), jobs.requests(10, max_tokens=512)
    found = in_flight([light, heavy], concurrency=8)
    assert len(found) == 8
    assert all(length > 512 for length in found)
    assert len(in_flight([light], concurrency=100)) == 40
    assert in_flight([], concurrency=8) == ()


def test_a_raw_prompt_of_ids_is_as_long_as_it_is() -> None:
    raw = said("", prompt=tuple(range(700)))
    assert bound_tokens(raw) == likely_tokens(raw) == 701
    (scored,) = jobs.score_requests(1, ids=(1, 2, 3))
    assert likely_tokens(scored.model_copy(update={"prompt": (4, 5)})) == 5
    assert bound_tokens(said("", prompt="Once")) >= 4


def test_a_given_text_is_counted_as_the_prompt_is() -> None:
    (scored,) = jobs.score_requests(1, ids=(1, 2, 3))
    text = scored.model_copy(update={"completion_ids": None, "completion": "犬は午後"})
    without = scored.model_copy(update={"completion_ids": None, "completion": ""})
    assert bound_tokens(text) - bound_tokens(without) == len("犬は午後".encode())
    assert likely_tokens(text) - likely_tokens(without) == 4
    assert likely_tokens(text.model_copy(update={"prompt": (4, 5)})) >= 2 + 4
