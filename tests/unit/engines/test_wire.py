"""The wire format: what goes out, and what comes back whatever the server does to it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from qgate.engines import wire
from qgate.errors import EngineError
from qgate.io.calls import Reply
from qgate.schemas.answers import GenerateRequest, Sampling
from qgate.schemas.evalset import Message
from tests.unit.engines import jobs


def reply(
    body: dict[str, Any] | None = None, *, status: Literal["ok", "timeout", "error"] = "ok", **more: Any
) -> Reply:
    fields: dict[str, Any] = {"error": None, "latency_s": 0.5, "attempt": 2}
    return Reply("id", status, body, **(fields | more))


def chat(choice: dict[str, Any], **body: Any) -> Reply:
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    return reply({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"} | choice], "usage": usage} | body)


def test_a_chat_body_names_every_sampling_field() -> None:
    (request,) = jobs.requests(1, min_p=0.1)
    body = wire.chat_body(request, "m", cache_salt="s")
    assert set(request.sampling.model_dump()) <= set(body)
    assert body["messages"] == [{"role": "user", "content": "Q 0"}]
    assert (body["cache_salt"], body["return_token_ids"], body["logprobs"]) == ("s", True, False)


def test_an_answer_keeps_what_came() -> None:
    found = wire.answer(
        chat({"token_ids": [7, 8], "stop_reason": 2}, prompt_token_ids=[1, 2, 3], system_fingerprint="f", metrics=None)
    )
    assert (found.text, found.token_ids, found.finish_reason, found.status) == ("Hi", (7, 8), "stop", "ok")
    assert (found.prompt_tokens, found.completion_tokens, found.latency_s, found.attempt) == (3, 2, 0.5, 2)
    assert found.prompt_token_ids_sha256 == wire.ids_sha256([1, 2, 3])
    assert found.extra == {"system_fingerprint": "f", "stop_reason": 2}


def test_the_prompt_hash_is_over_little_endian_int32() -> None:
    assert wire.ids_sha256([1]) == "67abdd721024f0ff4e0b3f4c2fc13bc5bad42d0b7851d456d88d203d15aaa450"


@pytest.mark.parametrize(
    ("choice", "status", "text"),
    [
        ({"finish_reason": "length"}, "truncated", "Hi"),
        ({"finish_reason": "abort"}, "error", None),
        ({"message": {"content": None}}, "ok", ""),
        ({"message": {"content": None, "tool_calls": [{}]}, "finish_reason": "tool_calls"}, "ok", None),
        ({"message": None}, "error", None),
    ],
)
def test_endings(choice: dict[str, Any], status: str, text: str | None) -> None:
    found = wire.answer(chat(choice))
    assert (found.status, found.text) == (status, text)


@pytest.mark.parametrize(
    ("reason", "num_tokens", "status"),
    [
        (None, 64, "truncated"), ("MAX_TOKENS", 65, "truncated"), (None, 63, "ok"), (None, None, "ok"),
        ("max_tokens", None, "truncated"), ("length", 3, "truncated"),
        ("stop", 64, "ok"), ("tool_calls", 64, "ok"), ("eos_token", 64, "ok"), ("end_turn", 64, "ok"),
        ("content_filter", 64, "ok"),
    ],
)  # fmt: skip
def test_an_answer_as_long_as_the_limit_was_cut_unless_its_reason_says_otherwise(
    reason: str | None, num_tokens: int | None, status: str
) -> None:
    found = wire.answer(chat({"finish_reason": reason}, usage={"completion_tokens": num_tokens}), 64)
    assert (found.status, found.finish_reason, found.completion_tokens) == (status, reason, num_tokens)


def test_an_empty_body_is_an_error_not_an_answer() -> None:
    assert wire.answer(reply({})).status == "error"


def test_what_did_not_come_says_why() -> None:
    late = wire.answer(reply(status="timeout", error="no answer within 5 s"))
    assert (late.status, late.error, late.text) == ("timeout", "no answer within 5 s", None)
    refused = wire.answer(reply(status="error", error="HTTP 400: too long", http_status=400))
    assert (refused.status, refused.extra) == ("error", {"http_status": 400})


def test_logprobs_that_are_not_finite_are_none() -> None:
    content = [{"logprob": value} for value in (-0.5, -9999.0, None, float("nan"), float("-inf"))]
    assert wire.answer(chat({"logprobs": {"content": content}})).logprobs == (-0.5, None, None, None, None)


def scored(positions: list[Any]) -> Reply:
    return reply({"choices": [{"prompt_logprobs": positions}]})


def entry(logprob: float | None, rank: int) -> dict[str, Any]:
    return {"logprob": logprob, "rank": rank, "decoded_token": "x"}


def test_scores_are_ordered_by_rank_and_the_forced_token_may_lie_outside() -> None:
    (request,) = jobs.score_requests(1, ids=(5, 6), top_k=2)
    inside = {"5": entry(-0.7, 2), "9": entry(-0.2, 1)}
    outside = {"6": entry(-7.0, 40), "3": entry(-0.1, 1), "4": entry(-3.0, 2)}
    found = wire.token_scores(scored([None, {"1": entry(-1, 1)}, inside, outside]), request, [0, 1])
    assert found.top_ids.tolist() == [[9, 5], [3, 4]]
    np.testing.assert_allclose(found.logprobs, [-0.7, -7.0], rtol=1e-6)
    np.testing.assert_allclose(found.top_logprobs, [[-0.2, -0.7], [-0.1, -3.0]], rtol=1e-6)
    assert found.prompt_token_ids_sha256 == wire.ids_sha256([0, 1])


def test_scores_keep_what_is_not_finite() -> None:
    (request,) = jobs.score_requests(1, ids=(5, 6), top_k=1)
    found = wire.token_scores(scored([None, {"5": entry(-9999.0, 9)}, {"6": entry(None, 1)}]), request, [0])
    assert found.logprobs[0] == -np.inf
    assert np.isnan(found.logprobs[1])
    assert np.isnan(found.top_logprobs).all()


def test_a_server_that_cannot_write_its_nans_gives_nans() -> None:
    (request,) = jobs.score_requests(1)
    said = "HTTP 400: Out of range float values are not JSON compliant"
    found = wire.token_scores(reply(status="error", error=said, http_status=400), request, [0])
    assert np.isnan(found.logprobs).all()


@pytest.mark.parametrize(
    "failed",
    [
        reply(status="timeout", error="no answer within 5 s"),
        reply(status="error", error="HTTP 400: too long", http_status=400),
        reply({"choices": [{"text": "x"}]}),
        scored([None]),
        reply([1]), reply({"choices": 5}), reply({"prompt_logprobs": 5}), scored([None, None]), scored([None, 5]),
        scored([None, {"9": entry(-1.0, 1)}]), scored([None, {"5": {"logprob": -1.0}}]), scored([None, {"5": None}]),
        scored([None, {"5": {"logprob": "-1.0", "rank": 1}}]), scored([None, {"5": {"logprob": -1.0, "rank": "first"}}]),
        scored([None, {"5": entry(-1.0, 2), str(2**40): entry(-1.0, 1)}]),
    ],
)  # fmt: skip
def test_scores_that_did_not_come_are_an_error(failed: Reply) -> None:
    (request,) = jobs.score_requests(1, ids=(5,), top_k=2)
    with pytest.raises(EngineError):
        wire.token_scores(failed, request, [0])


def test_a_verbatim_body_keeps_what_nobody_knows_and_replaces_only_what_a_replay_must() -> None:
    own = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "model": "theirs", "n": 3}
    request = request_of(body={**own, "stream": True, "temperature": 0.3, "guided_regex": "a+", "seed": 5})
    body = wire.body_of(request, "ours", cache_salt="s")
    assert body["messages"] == own["messages"]
    assert body["guided_regex"] == "a+"
    assert (body["model"], body["stream"], body["seed"]) == ("ours", False, request.sampling.seed)
    assert "n" not in body
    assert "cache_salt" not in body
    assert "top_k" not in body
    assert "return_token_ids" not in wire.body_of(request, "ours", vllm=False)


def test_a_raw_prompt_goes_to_completions_and_its_text_is_the_answer() -> None:
    request = request_of(body={"prompt": "Once"}, prompt="Once", logprobs=True)
    assert wire.path(request) == "/v1/completions"
    assert wire.body_of(request, "m")["logprobs"] == 0
    choice = {"text": " upon", "finish_reason": "length", "token_ids": [4], "prompt_token_ids": [1, 2]}
    choice["logprobs"] = {"token_logprobs": [-0.5]}
    found = wire.answer(Reply("r", "ok", {"choices": [choice]}, None, 0.1, 1, 200))
    assert (found.text, found.status, found.logprobs) == (" upon", "truncated", (-0.5,))
    assert found.prompt_token_ids_sha256 == wire.ids_sha256([1, 2])


def request_of(**fields: object) -> GenerateRequest:
    turns = (Message(role="user", content="Hi"),)
    sampling = Sampling(
        temperature=0.3, top_p=1.0, top_k=-1, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
        frequency_penalty=0.0, max_tokens=8, seed=9,
    )  # fmt: skip
    return GenerateRequest.model_validate({"id": "r", "messages": turns, "sampling": sampling, **fields})


def test_tokens_with_stops_go_to_completions_with_every_sampling_field() -> None:
    (request,) = jobs.requests(1, logprobs=True)
    asked = request.model_copy(update={"prompt": (5, 6, 7), "stop": ("\n", "a", "b", "c", "d")})
    body = wire.body_of(asked, "m", cache_salt="s")
    assert wire.path(asked) == "/v1/completions"
    assert (body["prompt"], body["stop"], body["logprobs"]) == ([5, 6, 7], ["\n", "a", "b", "c", "d"], 0)
    assert set(request.sampling.model_dump()) <= set(body)
    assert "messages" not in body
    assert wire.body_of(asked, "m", vllm=False)["stop"] == ["\n", "a", "b", "c"]  # OpenAI takes four
    assert "stop" not in wire.body_of(request, "m")


@pytest.mark.parametrize(("stops", "text"), [(("x", "\n"), "one"), (("two",), "one\n"), (("z",), None), (None, None)])
def test_an_answer_is_cut_at_what_the_server_did_not_stop_at(stops: tuple[str, ...] | None, text: str | None) -> None:
    came = wire.answer(chat({"message": {"content": "one\ntwo"}}))
    assert wire.until(came, stops).text == (came.text if text is None else text)


@pytest.mark.parametrize(
    "body",
    [
        [1], {"choices": [5]}, {"choices": {"a": 1}}, {"choices": 5}, {"choices": [{"message": {"content": 5}}]},
        {"choices": [{"message": {"content": "x"}}], "usage": 5},
        {"choices": [{"message": {"content": "x"}}], "usage": {"completion_tokens": "many"}},
        {"choices": [{"message": {"content": "x"}}], "prompt_token_ids": ["a"]},
        {"choices": [{"message": {"content": "x"}, "token_ids": 5}]},
        {"choices": [{"message": {"content": "x"}, "logprobs": {"content": [5]}}]},
        {"choices": [{"message": {"content": "x", "tool_calls": 5}}]},
    ],
)  # fmt: skip
def test_a_body_of_other_types_is_an_error_not_a_crash(body: Any) -> None:
    found = wire.answer(reply(body))
    assert (found.status, found.text) == ("error", None)
    assert "protocol" in str(found.error)
