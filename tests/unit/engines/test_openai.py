"""The openai engine against a small server: what it asks, what it refuses to ask, and that the key goes nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from qgate.engines.openai import ENGINE, OpenAiOptions
from qgate.errors import DiedError, EngineError, StartError
from qgate.io import flight
from qgate.ports import Engine, load_engine
from qgate.schemas.answers import ScoreRequest
from tests.http_stub import HttpStub, Request
from tests.unit.engines import jobs

KEY = "sk-very-secret-4711"


class Remote:
    """A server with one model; vLLM's or another's."""

    def __init__(self, *, vllm: bool = True, models: tuple[str, ...] = ("llama",), key: str | None = None):
        self.vllm = vllm
        self.models = models
        self.key = key

    async def __call__(self, request: Request) -> tuple[int, Any]:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return 401, {"error": {"message": f"wrong key: {request.headers.get('authorization')}"}}
        if request.path == "/v1/models":
            return 200, {"data": [{"id": name, "owned_by": "x"} for name in self.models]}
        if request.path in {"/version", "/health"}:
            return (200, {"version": "0.26.0"}) if self.vllm else (404, "")
        if request.path == "/tokenize":
            return 200, {"tokens": [1, 2, 3]}
        if request.path == "/v1/completions":
            positions = [None, *({str(id): {"logprob": -0.5, "rank": 1}} for id in request.body["prompt"][1:])]
            return 200, {"choices": [{"prompt_logprobs": positions}]}
        message = {"role": "assistant", "content": "Hello"}
        return 200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"completion_tokens": 1}}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight, "BACKOFF_S", 0.01)


@pytest.fixture
def remote() -> Iterator[HttpStub]:
    with HttpStub(Remote()) as stub:
        yield stub


def options(stub: HttpStub, **more: Any) -> OpenAiOptions:
    return OpenAiOptions(base_url=f"{stub.url}/v1", **more)


def test_is_registered_and_satisfies_the_protocol() -> None:
    assert isinstance(ENGINE, Engine)
    assert load_engine("openai") is ENGINE


def test_asks_with_every_field_and_takes_plain_answers(tmp_path: Path, remote: HttpStub) -> None:
    with ENGINE.open(jobs.job(tmp_path, options(remote))) as session:
        answers = list(session.generate(jobs.requests(5, top_k=7)))
    assert [(answer.text, answer.token_ids, answer.status) for answer in answers] == [("Hello", None, "ok")] * 5
    asked = [request.body for request in remote.seen if request.path == "/v1/chat/completions"]
    assert {(body["model"], body["top_k"], body["seed"], body["temperature"]) for body in asked} == {
        ("llama", 7, 1, 0.8)
    }
    assert len({body["cache_salt"] for body in asked}) == 1
    assert session.facts.version == "vLLM 0.26.0"
    assert session.facts.notes


def test_an_answer_of_all_the_tokens_asked_for_was_cut_where_no_reason_is_told(tmp_path: Path) -> None:
    class Silent(Remote):
        async def __call__(self, request: Request) -> tuple[int, Any]:
            status, body = await super().__call__(request)
            if request.path == "/v1/chat/completions":
                if request.body.get("logprobs"):
                    return 500, ""
                body["choices"][0]["finish_reason"] = None
                body["usage"]["completion_tokens"] = request.body["max_tokens"]
            return status, body

    with HttpStub(Silent(vllm=False)) as stub, ENGINE.open(jobs.job(tmp_path, options(stub))) as session:
        plain, scored = jobs.requests(2)
        answers = list(session.generate([plain, scored.model_copy(update={"logprobs": True})]))
    assert [answer.status for answer in answers] == ["truncated", "truncated"]


def test_scores_through_vllm(tmp_path: Path, remote: HttpStub) -> None:
    with ENGINE.open(jobs.job(tmp_path, options(remote))) as session:
        (scores,) = session.score(jobs.score_requests(1))
    assert scores.logprobs.tolist() == [-0.5] * 3


def test_another_server_gets_only_openai_fields_and_cannot_score(tmp_path: Path) -> None:
    with HttpStub(Remote(vllm=False)) as stub, ENGINE.open(jobs.job(tmp_path, options(stub))) as session:
        list(session.generate(jobs.requests(1)))
        assert "top_k" not in stub.seen[-1].body
        with pytest.raises(EngineError, match="cannot score") as caught:
            list(session.score(jobs.score_requests(1)))
        assert "token_evidence" in (caught.value.advice or "")
        right = ScoreRequest(id="r", messages=jobs.messages("Q"), completion="A")
        assert [len(each.token_ids) for each in session.score([right])] == [0], "told as missing; the run goes on"


def test_sampling_that_the_server_would_ignore_is_refused(tmp_path: Path) -> None:
    expected = pytest.raises(EngineError, match="would ignore top_k, repetition_penalty")
    with HttpStub(Remote(vllm=False)) as stub, ENGINE.open(jobs.job(tmp_path, options(stub))) as session, expected:
        list(session.generate(jobs.requests(1, top_k=20, repetition_penalty=1.1)))


def test_the_key_goes_to_the_server_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", f"{KEY}\r\n")
    with HttpStub(Remote(key=KEY)) as stub:
        with ENGINE.open(jobs.job(tmp_path, options(stub, api_key_env="MY_KEY"))) as session:
            answers = list(session.generate(jobs.requests(2)))
        monkeypatch.setenv("MY_KEY", f"{KEY}-wrong")
        with pytest.raises(StartError) as caught, ENGINE.open(jobs.job(tmp_path, options(stub, api_key_env="MY_KEY"))):
            pass
    assert [answer.status for answer in answers] == ["ok", "ok"]
    assert "api_key_env" in (caught.value.advice or "")
    said = [caught.value.message, session.facts.model_dump_json(), *(record.getMessage() for record in caplog.records)]
    said += [answer.model_dump_json() for answer in answers]
    said += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(KEY in text for text in said)


def test_a_key_of_several_lines_is_refused(tmp_path: Path, remote: HttpStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f"{KEY}\nX-Other: 1")
    with pytest.raises(StartError, match="MY_KEY holds a line break") as caught:  # noqa: SIM117
        with ENGINE.open(jobs.job(tmp_path, options(remote, api_key_env="MY_KEY"))):
            pass
    assert KEY not in str(caught.value)


def test_a_proxy_that_is_not_spoken_is_the_thing_to_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:9")
    job = jobs.job(tmp_path, OpenAiOptions(base_url="http://models.test/v1"))
    with pytest.raises(StartError, match="socks5 proxy") as caught, ENGINE.open(job):
        pass
    assert "no_proxy" in (caught.value.advice or "")


def test_a_key_that_is_not_set_is_named(tmp_path: Path, remote: HttpStub) -> None:
    with pytest.raises(StartError, match="MY_KEY is not set"):  # noqa: SIM117
        with ENGINE.open(jobs.job(tmp_path, options(remote, api_key_env="MY_KEY"))):
            pass


@pytest.mark.parametrize(
    ("models", "model", "message"),
    [(("a", "b"), None, "serves several models"), (("a",), "c", "does not serve 'c'"), ((), None, "serves several")],
)
def test_the_model_must_be_known(tmp_path: Path, models: tuple[str, ...], model: str | None, message: str) -> None:
    with HttpStub(Remote(models=models)) as stub, pytest.raises(StartError, match=message) as caught:  # noqa: SIM117
        with ENGINE.open(jobs.job(tmp_path, options(stub, model=model))):
            pass
    assert all(name in (caught.value.advice or "") for name in models)


def test_nobody_there_is_told_at_the_start(tmp_path: Path) -> None:
    with HttpStub(Remote()) as stub:
        pass
    with pytest.raises(StartError, match="no answer from") as caught:  # noqa: SIM117
        with ENGINE.open(jobs.job(tmp_path, options(stub))):
            pass
    assert "base_url" in (caught.value.advice or "")


def test_a_server_that_goes_away_is_a_death(tmp_path: Path, remote: HttpStub) -> None:
    with ENGINE.open(jobs.job(tmp_path, options(remote))) as session:
        list(session.generate(jobs.requests(1)))
        remote.stop()
        with pytest.raises(DiedError, match="is gone"):
            list(session.generate(jobs.requests(20)))


@pytest.mark.parametrize("url", ["http://user:pw@h/v1", "https://h/v1?key=x", "ftp://h", "h:8000"])
def test_addresses_with_secrets_or_without_sense_are_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        OpenAiOptions(base_url=url)
