"""Several servers on one GPU: started at the same time, left at once, and at any load when asked to repeat."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from qgate.engines.vllm import ENGINE
from qgate.ports import Session, Tool
from tests.gpu.serving import GPUS, family, gpu_holders, requests, serve_job, wait_for


def test_two_servers_that_start_at_once_share_the_machine(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    before = family()
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:

        def start(name: str) -> Session:
            job = serve_job(tmp_path / name, vllm_tool, demo_model, name=name)
            return stack.enter_context(ENGINE.open(job))

        sessions = dict(zip(("left", "right"), pool.map(start, ("left", "right")), strict=True))
        asked = requests(8, temperature=0.0)
        found = {
            name: {answer.id: answer for answer in answers}
            for name, answers in zip(
                sessions, pool.map(lambda one: list(one.generate(asked)), sessions.values()), strict=True
            )
        }
        assert all(len(answers) == 8 for answers in found.values())
        assert all(answer.status in {"ok", "truncated"} for answers in found.values() for answer in answers.values())
        mine = family() - before
        if GPUS:
            assert len(mine & gpu_holders()) >= 2
        for name, session in sessions.items():
            facts = session.facts
            assert facts.kernels["graphs"] == "eager"
            assert facts.kernels["model_runner"] in {"v1", "v2"}
            assert facts.details["kv_cache_tokens"] > 1000
            assert name in facts.argv
            if GPUS:
                assert facts.device == GPUS[0]["name"]
                assert facts.driver == GPUS[0]["driver_version"]
                assert facts.kernels["attention"]
                assert facts.details["model_gib"] > 0.2
    assert not family() - before
    assert not mine & gpu_holders()


@pytest.mark.gpu
def test_repeatable_answers_do_not_depend_on_the_load(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    job = serve_job(tmp_path / "w", vllm_tool, demo_model, repeatable=True)
    asked = requests(12, max_tokens=64)
    with ENGINE.open(job) as session:
        together = {answer.id: answer.token_ids for answer in session.generate(asked)}
        alone = {answer.id: answer.token_ids for one in asked for answer in session.generate([one])}
        facts = session.facts
    assert together == alone
    assert facts.env_vars["VLLM_BATCH_INVARIANT"] == "1"
    assert any("batch-invariant" in note for note in facts.notes)


@pytest.mark.gpu
def test_several_api_servers_share_one_engine(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    before = family()
    job = serve_job(tmp_path / "w", vllm_tool, demo_model, options={"api_servers": 2})
    with ENGINE.open(job) as session:
        found = list(session.generate(requests(64, max_tokens=8)))
        assert "--api-server-count" in session.facts.argv
    assert {answer.status for answer in found} <= {"ok", "truncated"}
    told = session.facts.details["generation_tokens"]
    assert told > 0.75 * sum(answer.completion_tokens or 0 for answer in found), "/metrics counts for both"
    assert session.facts.kernels["model_runner"] in {"v1", "v2"}
    assert not family() - before


def test_a_server_that_is_left_frees_the_gpu_at_once(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    before = family()
    with ENGINE.open(serve_job(tmp_path / "w", vllm_tool, demo_model)) as session:
        mine = family() - before
        assert session.facts.start_s
        if GPUS:
            assert mine & gpu_holders()
        began = time.monotonic()
    wait_for(lambda: not mine & gpu_holders(), 5, "the GPU is free again")
    assert time.monotonic() - began < 25
