"""What every engine must do, asked of each that needs no model: the fake, vLLM (a stand-in server), openai (a stub)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from pydantic import BaseModel, ValidationError

from qgate.engines import fake, openai, vllm
from qgate.ports import Engine, Session, Tool, load_engine
from qgate.schemas.answers import EngineFacts
from tests.http_stub import HttpStub
from tests.processes import is_alive
from tests.unit.engines import jobs
from tests.unit.engines.test_openai import Remote
from tests.unit.engines.test_vllm import stub_job

NAMES = ("fake", "openai", "vllm")
Opener = Callable[[], AbstractContextManager[Session]]


@pytest.fixture
def remote() -> Iterator[HttpStub]:
    with HttpStub(Remote()) as stub:
        yield stub


@pytest.fixture(params=NAMES)
def opener(request: pytest.FixtureRequest, tmp_path: Path, remote: HttpStub, monkeypatch: pytest.MonkeyPatch) -> Opener:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    if request.param == "vllm":
        return lambda: vllm.ENGINE.open(stub_job(tmp_path))
    if request.param == "openai":
        return lambda: openai.ENGINE.open(jobs.job(tmp_path, openai.OpenAiOptions(base_url=remote.url)))
    return lambda: fake.ENGINE.open(jobs.job(tmp_path, fake.ENGINE.options()))


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True) if is_alive(child)}


def test_every_request_is_answered_once_and_nothing_stays_behind(opener: Opener) -> None:
    before = children()
    asked = jobs.requests(40)
    with opener() as session:
        answers = list(session.generate(iter(asked)))
        assert list(session.generate([])) == []
        scores = list(session.score(iter(jobs.score_requests(10))))
        assert list(session.score([])) == []
    assert sorted(answer.id for answer in answers) == sorted(request.id for request in asked)
    assert sorted(one.id for one in scores) == sorted(str(index) for index in range(10))
    assert children() <= before


def test_answers_are_complete(opener: Opener) -> None:
    with opener() as session:
        for answer in session.generate(jobs.requests(10)):
            assert answer.status == "ok"
            assert answer.text
            assert answer.finish_reason == "stop"
            assert answer.error is None


def test_scores_have_their_shapes(opener: Opener) -> None:
    with opener() as session:
        for one in session.score(jobs.score_requests(3, ids=(5, 6, 7), top_k=4)):
            assert one.token_ids.tolist() == [5, 6, 7]
            assert one.logprobs.shape == (3,)
            assert one.top_ids.shape == one.top_logprobs.shape == (3, 4)
            assert (one.logprobs.dtype, one.top_ids.dtype, one.top_logprobs.dtype) == (
                np.float32, np.int32, np.float32,
            )  # fmt: skip


def test_leaving_in_the_middle_leaves_nothing(opener: Opener) -> None:
    before = children()
    with opener() as session:
        next(iter(session.generate(jobs.requests(40))))
    assert children() <= before


def test_facts_say_who_answered(opener: Opener) -> None:
    with opener() as session:
        list(session.generate(jobs.requests(1)))
    assert isinstance(session.facts, EngineFacts)
    assert session.facts.engine in NAMES
    assert session.facts.version
    assert session.facts.device


@pytest.mark.parametrize("name", NAMES)
def test_options_are_closed_frozen_and_described(name: str) -> None:
    engine = load_engine(name)
    assert isinstance(engine, Engine)
    options: type[BaseModel] = engine.options
    assert all(field.description for field in options.model_fields.values())
    needed: dict[str, Any] = {"base_url": "http://127.0.0.1:1"} if name == "openai" else {}
    with pytest.raises(ValidationError):
        options.model_validate({**needed, "no_such_option": 1})
    made = options.model_validate(needed)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(made, next(iter(options.model_fields)), 1)
    assert options.model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize("name", NAMES)
def test_device_and_workers_are_known_without_a_start(name: str) -> None:
    engine = load_engine(name)
    assert engine.device(Tool(Path(sys.executable), "x"))
    assert all(worker.is_file() for worker in engine.workers)
