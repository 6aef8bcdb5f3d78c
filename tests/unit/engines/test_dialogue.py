"""Requests through a client: answers, scores, NaN that a server cannot write, and what could not be scored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qgate.engines import wire
from qgate.engines.dialogue import Dialogue
from qgate.errors import EngineError
from qgate.io.calls import Target, Watch
from qgate.io.client import Client
from qgate.schemas.answers import ScoreRequest
from tests.http_stub import Answerer, HttpStub, Request
from tests.unit.engines import jobs

SAYS_NAN = (400, {"error": {"message": "Out of range float values are not JSON compliant"}})  # as vLLM 0.32 does
SAYS_NOTHING = (500, "Internal Server Error")


def dialogue(stub: HttpStub, **more: Any) -> Dialogue:
    return Dialogue(Client(Target(stub.url, 4, 5.0, Watch("stub", 5.0))), "the stub", "m", **more)


def chat(text: str) -> tuple[int, Any]:
    return 200, {"choices": [{"message": {"content": text}, "finish_reason": "stop", "token_ids": [1, 2]}]}


def broken_for(ids: set[str], failure: tuple[int, Any] = SAYS_NAN) -> Answerer:
    async def answer(request: Request) -> tuple[int, Any]:
        if request.path == "/tokenize":
            return 200, {"tokens": [9]}
        if request.path == "/v1/completions":
            if len(request.body["prompt"]) > 4:
                return 400, {"error": {"message": "too long"}}
            return 200, {
                "choices": [{"prompt_logprobs": [None, *({str(i): {"logprob": -1.0, "rank": 1}} for i in (5, 6, 7))]}]
            }
        broken = request.body["messages"][0]["content"] in ids and request.body["logprobs"]
        return failure if broken else chat("!!")

    return answer


@pytest.mark.parametrize("failure", [SAYS_NAN, SAYS_NOTHING])
def test_nan_that_cannot_be_written_is_an_answer_without_finite_logprobs(failure: tuple[int, Any]) -> None:
    with HttpStub(broken_for({"Q 1"}, failure)) as stub:
        answers = {answer.id: answer for answer in dialogue(stub).answers(jobs.requests(3, logprobs=True))}
    assert len(answers) == 3
    assert {answer.status for answer in answers.values()} == {"ok"}
    assert answers["set/1/warm/1"].logprobs == (None, None)
    assert answers["set/0/warm/1"].logprobs is None
    salts = {request.body["cache_salt"] for request in stub.seen}
    assert len(salts) == 1


@pytest.mark.parametrize("logprobs", [True, False])
def test_a_500_that_does_not_go_away_is_an_error(logprobs: bool) -> None:
    async def always(request: Request) -> tuple[int, Any]:
        return SAYS_NOTHING

    with HttpStub(always) as stub:
        (answer,) = dialogue(stub).answers(jobs.requests(1, logprobs=logprobs))
    assert (answer.status, answer.logprobs) == ("error", None)
    assert len(stub.seen) == 1 + logprobs


def test_each_arm_has_a_salt_of_its_own() -> None:
    with HttpStub(broken_for(set())) as stub:
        for _ in range(2):
            list(dialogue(stub).answers(jobs.requests(2)))
    assert len({request.body["cache_salt"] for request in stub.seen}) == 2


def test_scores_come_before_the_error_that_names_what_is_missing() -> None:
    asked = [*jobs.score_requests(3), jobs.score_requests(1, ids=(5, 6, 7, 8))[0].model_copy(update={"id": "long"})]
    found = []
    with HttpStub(broken_for(set())) as stub:
        scores = dialogue(stub).scores(asked)
        with pytest.raises(EngineError, match=r"could not score 1 answers; the first is long: HTTP 400: too long"):
            for one in scores:
                found.append(one)  # noqa: PERF402  (what came before the error is the point)
    assert sorted(one.id for one in found) == ["0", "1", "2"]
    np.testing.assert_array_equal(found[0].logprobs, [-1, -1, -1])


def test_scoring_in_flight_stays_within_its_memory() -> None:
    costs: list[int] = []

    def cost(num_positions: int) -> int:
        costs.append(num_positions)
        return 100

    with HttpStub(broken_for(set())) as stub:
        list(dialogue(stub, score_memory_bytes=100, score_cost_bytes=cost).scores(jobs.score_requests(6)))
    assert costs == [4] * 6


def test_scores_after_given_tokens_ask_for_no_tokens() -> None:
    asked = [one.model_copy(update={"prompt": (9,)}) for one in jobs.score_requests(2)]
    with HttpStub(broken_for(set())) as stub:
        found = list(dialogue(stub).scores(asked))
    assert {request.path for request in stub.seen} == {"/v1/completions"}
    assert all(request.body["prompt"] == [9, 5, 6, 7] for request in stub.seen)
    assert len({request.body["cache_salt"] for request in stub.seen}) == 2, "the prefix cache is off between them"
    assert {one.prompt_token_ids_sha256 for one in found} == {wire.ids_sha256([9])}


def texts(**answers: str) -> list[ScoreRequest]:
    return [ScoreRequest(id=key, messages=jobs.messages(), completion=text, top_k=1) for key, text in answers.items()]


async def bytes_as_tokens(request: Request) -> tuple[int, Any]:
    """Each byte of a text is a token; what is longer than ten bytes is refused, and `broken` fails."""
    if request.path == "/tokenize":
        text = request.body.get("prompt")
        if text == "broken":
            return 500, {"error": {"message": "no tokenizer"}}
        return 200, {"tokens": [9] if text is None else list(text.encode())}
    ids = request.body["prompt"]
    if len(ids) > 11:
        return 400, {"error": {"message": "maximum context length"}}
    told = [{str(token): {"logprob": -float(token), "rank": 1}} for token in ids[1:]]
    return 200, {"choices": [{"prompt_logprobs": [None, *told]}]}


def test_a_text_is_turned_into_tokens_by_the_server_and_scored_after_the_prompt() -> None:
    with HttpStub(bytes_as_tokens) as stub:
        (found,) = dialogue(stub).scores(texts(a="ab"))
    assert (found.id, found.token_ids.tolist(), found.logprobs.tolist()) == ("a", [97, 98], [-97.0, -98.0])
    asked = [request.body for request in stub.seen]
    assert asked[1] == {"model": "m", "prompt": "ab", "add_special_tokens": False}
    assert asked[2]["prompt"] == [9, 97, 98]


def test_a_text_without_a_token_or_too_long_has_no_scores_and_the_others_have_theirs() -> None:
    with HttpStub(bytes_as_tokens) as stub:
        found = {one.id: one for one in dialogue(stub).scores(texts(empty="", long="a" * 20, fine="a"))}
    assert {key: len(one.token_ids) for key, one in found.items()} == {"empty": 0, "long": 0, "fine": 1}
    assert found["long"].top_ids.shape == (0, 1)


def test_a_server_that_fails_on_a_text_is_an_error() -> None:
    with (
        HttpStub(bytes_as_tokens) as stub,
        pytest.raises(EngineError, match=r"could not score 1 answers.*no tokenizer"),
    ):
        list(dialogue(stub).scores(texts(a="broken")))


@pytest.mark.parametrize(
    "said",
    [[1, 2], {"tokens": None}, {"tokens": ["a"]}, {"tokens": [True]}, {"tokens": [2**40]}, {"tokens": 5}, {}],
)
@pytest.mark.parametrize("asked", [jobs.score_requests(1), texts(a="ab")], ids=["ids", "text"])
def test_a_tokenizer_that_answers_nonsense_is_an_error(asked: list[ScoreRequest], said: Any) -> None:
    async def answer(request: Request) -> tuple[int, Any]:
        return 200, said

    with HttpStub(answer) as stub, pytest.raises(EngineError, match=r"could not score 1 answers.*token ids"):
        list(dialogue(stub).scores(asked))


def test_scores_that_cannot_be_written_are_nan_for_a_text_too() -> None:
    async def answer(request: Request) -> tuple[int, Any]:
        return SAYS_NAN if request.path == "/v1/completions" else await bytes_as_tokens(request)

    with HttpStub(answer) as stub:
        (found,) = dialogue(stub).scores(texts(a="ab"))
    assert np.isnan(found.logprobs).tolist() == [True, True]
