"""What every engine must do, whatever it serves: called by the contract tests with an open engine."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

import psutil
import pytest

from qgate.ports import Session
from qgate.schemas.answers import Answer, EngineFacts, GenerateRequest, Sampling, ScoreRequest
from qgate.schemas.evalset import Message
from tests.processes import is_alive

Opened = Callable[[], AbstractContextManager[Session]]


def requests(num: int, *, seed: int = 1, temperature: float = 0.8, max_tokens: int = 8) -> list[GenerateRequest]:
    """Requests with different prompts and one seed."""
    sampling = Sampling(
        temperature=temperature, top_p=0.95, top_k=-1, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
        frequency_penalty=0.0, max_tokens=max_tokens, seed=seed,
    )  # fmt: skip
    asked = [f"Name the number that follows {number}." for number in range(num)]
    return [
        GenerateRequest(id=f"{text}/{seed}", messages=(Message(role="user", content=text),), sampling=sampling)
        for text in asked
    ]


def answers(session: Session, asked: list[GenerateRequest]) -> dict[str, Answer]:
    """By id, once it is sure that each request has exactly one answer."""
    found = list(session.generate(asked))
    assert sorted(answer.id for answer in found) == sorted(request.id for request in asked)
    return {answer.id: answer for answer in found}


def one_answer_per_request(session: Session) -> None:
    """Whatever becomes of it, a request has an answer, and the answer's fields fit its status."""
    for answer in answers(session, requests(7)).values():
        assert answer.status in {"ok", "truncated"}
        assert (answer.status == "truncated") == (answer.finish_reason == "length")
        assert answer.text is not None
        assert answer.error is None
        assert answer.latency_s >= 0
        assert answer.completion_tokens is not None
        assert answer.completion_tokens <= 8
        assert answer.token_ids is None or len(answer.token_ids) == answer.completion_tokens


def nothing_asked_nothing_answered(session: Session) -> None:
    """No request, no answer, no fault."""
    assert list(session.generate([])) == []


def same_seed_same_text(session: Session) -> None:
    """One request at a time, twice: the same prompt ids, and the same text for the same seed."""
    for request in requests(2):
        (first,), (second,) = answers(session, [request]).values(), answers(session, [request]).values()
        assert (first.text, first.token_ids) == (second.text, second.token_ids)
        assert first.prompt_token_ids_sha256 == second.prompt_token_ids_sha256


def facts_say_where_numbers_come_from(session: Session, name: str) -> None:
    """Engine, version and device are there, and the value survives storing."""
    facts = session.facts
    assert facts.engine == name
    assert facts.version
    assert facts.device
    assert EngineFacts.model_validate_json(facts.model_dump_json()) == facts


def scores_fit_what_was_forced(session: Session) -> None:
    """One value per forced id and K alternatives, most likely first."""
    (request,) = requests(1)
    forced = (5, 9, 7)
    asked = [ScoreRequest(id=f"k{k}", messages=request.messages, completion_ids=forced, top_k=k) for k in (0, 2)]
    found = {scores.id: scores for scores in session.score(asked)}
    assert found.keys() == {"k0", "k2"}
    for name, top_k in (("k0", 0), ("k2", 2)):
        assert found[name].token_ids.tolist() == list(forced)
        assert found[name].logprobs.shape == (3,)
        assert found[name].top_ids.shape == found[name].top_logprobs.shape == (3, top_k)
        assert (found[name].logprobs <= 1e-6).all()
    assert (found["k2"].top_logprobs[:, 0] >= found["k2"].top_logprobs[:, 1]).all()
    assert found["k0"].logprobs == pytest.approx(found["k2"].logprobs, abs=1e-4)


def a_text_is_scored_as_its_tokens(session: Session) -> None:
    """The ids of a text are the engine's to say, and their scores are those of the same ids given; no token: no score."""
    (request,) = requests(1)
    asked = [ScoreRequest(id=text, messages=request.messages, completion=text, top_k=2) for text in ("It is fine.", "")]
    found = {scores.id: scores for scores in session.score(asked)}
    assert found.keys() == {"It is fine.", ""}
    text, nothing = found["It is fine."], found[""]
    assert nothing.token_ids.shape == nothing.logprobs.shape == (0,)
    assert nothing.top_ids.shape == nothing.top_logprobs.shape == (0, 2)
    given = ScoreRequest(id="ids", messages=request.messages, completion_ids=tuple(text.token_ids.tolist()), top_k=2)
    (same,) = session.score([given])
    assert text.logprobs == pytest.approx(same.logprobs, abs=1e-4)
    assert text.prompt_token_ids_sha256 == same.prompt_token_ids_sha256


def leaving_ends_every_process(opened: Opened) -> None:
    """Also when an error leaves the context while answers are on their way."""
    before = _children()
    with pytest.raises(ZeroDivisionError), opened() as session:
        next(iter(session.generate(requests(4))))
        raise ZeroDivisionError
    assert _children() <= before


def _children() -> set[int]:
    children = psutil.Process(os.getpid()).children(recursive=True)
    return {child.pid for child in children if is_alive(child)}
