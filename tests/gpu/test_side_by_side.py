"""Several servers on one GPU: started at the same time, beside a restless neighbour, at any load when asked to repeat."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from qgate.engines.vllm import ENGINE
from qgate.ports import Session, Tool
from tests.gpu.serving import GPUS, family, gpu_holders, requests, serve_job, wait_for

RESTLESS = """
import time, torch
while True:
    held = torch.empty(6 << 30, dtype=torch.uint8, device="cuda")
    print("held", flush=True)
    time.sleep(0.7)
    del held
    torch.cuda.empty_cache()
    time.sleep(0.7)
"""


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
            assert facts.details["model_gib"] > 0.2
            assert name in facts.argv
            if GPUS:
                assert facts.device == GPUS[0]["name"]
                assert facts.driver == GPUS[0]["driver_version"]
                assert facts.kernels["attention"]
    assert not family() - before
    assert not mine & gpu_holders()


@contextmanager
def restless_neighbour(tool: Tool) -> Iterator[None]:
    """A process that takes and frees 6 GiB of the GPU again and again."""
    with subprocess.Popen([tool.python, "-c", RESTLESS], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        yield
        assert child.poll() is None
        child.kill()


@pytest.mark.gpu
def test_a_neighbour_that_frees_memory_does_not_kill_a_server_that_starts(
    tmp_path: Path, vllm_tool: Tool, demo_model: Path
) -> None:
    """With no KV size in the recipe, vLLM would measure the memory and refuse when it grows meanwhile."""
    options = {"kv_cache_memory_bytes": None, "gpu_memory_utilization": 0.05}
    job = serve_job(tmp_path / "w", vllm_tool, demo_model, options=options)
    with restless_neighbour(vllm_tool), ENGINE.open(job) as session:
        assert len(list(session.generate(requests(2)))) == 2


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
