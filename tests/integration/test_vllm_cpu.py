"""A real vLLM server on a CPU, through the engine: it starts, answers, scores and stops, and its faults are told apart."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from qgate.engines.vllm import ENGINE, VllmOptions
from qgate.errors import DiedError, HungError, StartError
from qgate.io import server as server_module
from qgate.ports import ServeJob, Session, Tool
from qgate.schemas.answers import Answer, GenerateRequest, Sampling, ScoreRequest
from qgate.schemas.evalset import Message
from tests.processes import is_alive, wait_for

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
ONE_THREAD = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Up:
    """A session and how to leave it."""

    session: Session
    stack: ExitStack


def serve_job(
    folder: Path, tool: Tool, model: Path, *, options: dict[str, Any] | None = None, **changes: Any
) -> ServeJob:
    fields: dict[str, Any] = {"enforce_eager": True, "kv_cache_memory_bytes": 1 << 30, "env": ONE_THREAD}
    job: dict[str, Any] = {
        "checkpoint": model, "name": "baseline", "dtype": "float16", "tool": tool, "concurrency": 8,
        "options": VllmOptions(**(fields | (options or {}))), "request_timeout_s": 120.0, "stall_timeout_s": 60.0,
        "repeatable": False, "max_model_len": 512, "log": folder / "serve.log", "work": folder, "needs_scores": True,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    return ServeJob(**(job | changes))


def requests(count: int, seed: int = 1, *, temperature: float = 0.8, max_tokens: int = 12) -> list[GenerateRequest]:
    sampling = Sampling(
        temperature=temperature, top_p=0.95, top_k=-1, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
        frequency_penalty=0.0, max_tokens=max_tokens, seed=seed,
    )  # fmt: skip
    asked = [f"Write a sentence about the number {index}." for index in range(count)]
    return [
        GenerateRequest(id=text, messages=(Message(role="user", content=text),), sampling=sampling, logprobs=True)
        for text in asked
    ]


def answers(session: Session, asked: list[GenerateRequest]) -> dict[str, Answer]:
    return {answer.id: answer for answer in session.generate(asked)}


def family() -> set[int]:
    """Living descendants of this process that belong to a vLLM server."""
    found = psutil.Process().children(recursive=True)
    return {process.pid for process in found if is_alive(process)}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, vllm_tool: Tool, demo_model: Path) -> Iterator[dict[str, Up]]:
    """Two servers, started side by side: one to talk to, one to do harm to."""
    folder = tmp_path_factory.mktemp("servers")
    stall_s = {"steady": 60.0, "victim": 8.0}

    def start(name: str) -> Up:
        stack = ExitStack()
        job = serve_job(folder / name, vllm_tool, demo_model, name=name, stall_timeout_s=stall_s[name])
        return Up(stack.enter_context(ENGINE.open(job)), stack)

    with ThreadPoolExecutor(2) as pool:
        up = dict(zip(stall_s, pool.map(start, stall_s), strict=True))
    yield up
    running = family()
    assert running
    for one in up.values():
        one.stack.close()
    wait_for(lambda: not any(is_alive(pid) for pid in running))


@pytest.fixture
def session(both: dict[str, Up]) -> Session:
    return both["steady"].session


def test_records_what_decides_the_bytes(session: Session) -> None:
    facts = session.facts
    assert facts.version[0].isdigit()
    assert facts.kernels["graphs"] == "eager"
    assert facts.kernels["model_runner"] in {"v1", "v2"}
    assert facts.details["kv_cache_tokens"] > 1000
    assert facts.details["max_model_len"] == 520
    assert facts.packages["torch"]
    assert any("CPU build" in note for note in facts.notes)
    assert (facts.start_s or 0) > 1


def test_same_seed_same_text_and_other_seeds_other_text(session: Session) -> None:
    def in_turn(asked: list[GenerateRequest]) -> dict[str, Answer]:
        """Alone in every batch: which others are in it can change the last digits, and so a token."""
        return {key: answer for one in asked for key, answer in answers(session, [one]).items()}

    first, again = in_turn(requests(4)), in_turn(requests(4))
    other = in_turn(requests(4, seed=2))
    assert {key: answer.token_ids for key, answer in first.items()} == {
        key: answer.token_ids for key, answer in again.items()
    }
    assert all(first[key].prompt_token_ids_sha256 == other[key].prompt_token_ids_sha256 for key in first)
    assert any(first[key].text != other[key].text for key in first)


def test_answers_are_whole(session: Session) -> None:
    for answer in answers(session, requests(3, temperature=0.0)).values():
        assert answer.status in {"ok", "truncated"}
        assert answer.text
        assert answer.token_ids is not None
        assert answer.logprobs is not None
        assert len(answer.token_ids) == len(answer.logprobs) == answer.completion_tokens
        assert (answer.prompt_tokens or 0) > 10
        assert (answer.finish_reason == "length") == (answer.status == "truncated")


def test_scores_are_those_of_the_generation(session: Session) -> None:
    asked = requests(4)
    found = answers(session, asked)
    wanted = [
        ScoreRequest(id=one.id, messages=one.messages, completion_ids=found[one.id].token_ids or (), top_k=20)
        for one in asked
    ]
    scores = {one.id: one for one in session.score(wanted)}
    assert set(scores) == set(found)
    for key, answer in found.items():
        one = scores[key]
        assert one.prompt_token_ids_sha256 == answer.prompt_token_ids_sha256
        np.testing.assert_allclose(one.logprobs, np.asarray(answer.logprobs, dtype=float), atol=0.05)
        assert one.top_ids.shape == (len(one.token_ids), 20)
        assert (one.top_ids >= 0).all()
        assert (np.diff(one.top_logprobs, axis=1) <= 0).all()
        assert np.exp(one.top_logprobs.astype(float)).sum(axis=1).max() <= 1.001
        listed = one.top_ids == one.token_ids[:, None]
        rows, columns = np.nonzero(listed)
        assert rows.size > 0
        np.testing.assert_array_equal(one.logprobs[rows], one.top_logprobs[rows, columns])


def test_a_text_is_scored_as_the_server_s_tokens_and_what_cannot_be_has_none(session: Session) -> None:
    asked = ["The number is one.", "", "word " * 2000, "<|im_end|>"]
    wanted = [ScoreRequest(id=text, messages=requests(1)[0].messages, completion=text, top_k=5) for text in asked]
    found = {one.id: one for one in session.score(wanted)}
    assert set(found) == set(asked)
    fine = found[asked[0]]
    assert len(fine.token_ids) > 3
    assert fine.top_ids.shape == (len(fine.token_ids), 5)
    (same,) = session.score(
        [wanted[0].model_copy(update={"completion": None, "completion_ids": tuple(fine.token_ids.tolist())})]
    )
    np.testing.assert_allclose(fine.logprobs, same.logprobs, atol=0.05)
    assert found[""].token_ids.size == found["word " * 2000].token_ids.size == 0
    assert found["<|im_end|>"].token_ids.size == 1, "vLLM has no switch for it: docs/method.md says so"


def test_a_request_that_cannot_be_served_is_an_answer(session: Session) -> None:
    text = "word " * 2000
    long = requests(1)[0].model_copy(update={"id": "long", "messages": (Message(role="user", content=text),)})
    found = answers(session, [long, *requests(1)])
    assert found["long"].status == "error"
    assert "HTTP 400" in (found["long"].error or "")
    assert found[requests(1)[0].id].status in {"ok", "truncated"}


def test_a_hang_and_then_a_death_each_end_in_one_clear_message(both: dict[str, Up]) -> None:
    victim = both["victim"]
    leader = next(
        process for process in filter(is_alive, psutil.Process().children())
        if "victim" in process.cmdline() and "vllm.entrypoints.openai.api_server" in process.cmdline()
    )  # fmt: skip
    os.killpg(leader.pid, signal.SIGSTOP)
    with pytest.raises(HungError, match=r"(?s)the vLLM server of victim finished nothing for .* s.*log: .*serve\.log"):
        list(victim.session.generate(requests(3)))
    os.killpg(leader.pid, signal.SIGCONT)

    members = {leader.pid, *(child.pid for child in leader.children(recursive=True))}
    replies = victim.session.generate(requests(20, max_tokens=200))
    leader.send_signal(signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(DiedError, match=r"(?s)the vLLM server of victim was ended by SIGKILL.*\n  \| ") as caught:
        list(replies)
    assert time.monotonic() - began < 100  # nobody waited for an answer, which may take 120 s
    assert "run the same command again" in (caught.value.advice or "")
    victim.stack.close()
    wait_for(lambda: not any(is_alive(pid) for pid in members))


def test_a_checkpoint_that_is_not_there_is_told_without_a_start(tmp_path: Path, vllm_tool: Tool) -> None:
    job = serve_job(tmp_path / "w", vllm_tool, tmp_path / "nothing")
    with pytest.raises(StartError, match="no checkpoint in") as caught, ENGINE.open(job):
        pass
    assert "config.json" in (caught.value.advice or "")


def test_a_checkpoint_without_weights_is_named_with_the_logs_tail(
    tmp_path: Path, vllm_tool: Tool, demo_model: Path
) -> None:
    before = family()
    model = tmp_path / "model"
    shutil.copytree(demo_model, model, ignore=shutil.ignore_patterns("*.safetensors"))
    with pytest.raises(StartError) as caught, ENGINE.open(serve_job(tmp_path / "w", vllm_tool, model)):
        pass
    assert "did not start: it exited with" in caught.value.message
    assert "the checkpoint is incomplete" in caught.value.message
    assert "\n  | " in caught.value.message
    assert not family() - before


def test_a_taken_port_is_named(
    tmp_path: Path, vllm_tool: Tool, demo_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = family()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        job = serve_job(tmp_path / "w", vllm_tool, demo_model, options={"port": port})
        with pytest.raises(StartError, match=f"port {port} is taken"), ENGINE.open(job):
            pass
        monkeypatch.setattr(server_module, "_is_free", lambda port: True)  # lost between the look and the server's bind
        with pytest.raises(StartError, match=r"(?s)exited with 1: the port is taken.*serve\.log"), ENGINE.open(job):
            pass
    assert not family() - before
