"""Faults of a server in the middle of its work: told in one message, and where a fresh server can go on, it does."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from qgate.engines.vllm import ENGINE
from qgate.errors import DiedError
from qgate.judge import defects
from qgate.ports import ServeJob, Tool
from qgate.rooms.arms import Serving
from qgate.schemas.answers import ScoreRequest
from qgate.schemas.evalset import Message
from tests.gpu.serving import (
    GIB,
    GPUS,
    Notes,
    engine_core_of,
    family,
    gpu_holders,
    requests,
    serve_job,
    server_of,
    serving,
    step,
    wait_for,
)
from tests.gpu.weights import Tensors, harmed

NUM, LONG = (96, 300) if GPUS else (72, 24)  # several batches, which end together
NORM = "model.norm.weight"


def kill_server() -> None:
    """As the kernel does for want of memory."""
    server_of("baseline").send_signal(signal.SIGKILL)


def kill_engine_core() -> None:
    """The process with the model in it; the API server lives on for a moment."""
    engine_core_of(server_of("baseline")).send_signal(signal.SIGKILL)


def kill_one_of_the_api_servers() -> None:
    """The others would go on answering."""
    one = next(each for each in server_of("baseline").children() if "APIServer" in each.name())
    one.send_signal(signal.SIGKILL)


def stop_all() -> None:
    """A hang: nothing ends, nothing answers, and the GPU stays taken."""
    os.killpg(server_of("baseline").pid, signal.SIGSTOP)


def harm_after(num: int, notes: Notes, harm: Callable[[], None]) -> threading.Thread:
    """Does `harm` once `num` answers have been stored."""

    def main() -> None:
        wait_for(lambda: notes.num_done >= num, 300, f"{num} answers")
        harm()

    thread = threading.Thread(target=main, daemon=True)
    thread.start()
    return thread


@dataclass(frozen=True)
class Loss:
    """How a server is lost, and what is said of it."""

    harm: Callable[[], None]
    said: str = "vLLM server of baseline"
    stall_s: float = 120.0
    api_servers: int | None = None


LOSSES = {
    "a killed server": Loss(kill_server, "was ended by SIGKILL"),
    "a killed engine": Loss(kill_engine_core),
    "a hang": Loss(stop_all, "finished nothing for", stall_s=20.0),
    "the engine of several API servers": Loss(kill_engine_core, api_servers=4),
    "one of several API servers": Loss(kill_one_of_the_api_servers, api_servers=4),
}
NEED_GPU = [name for name, loss in LOSSES.items() if loss.api_servers]
"""vLLM's CPU build has no command that starts several."""


@pytest.mark.parametrize(
    "loss", [pytest.param(name, marks=[pytest.mark.gpu] if name in NEED_GPU else []) for name in LOSSES]
)
def test_a_lost_server_is_started_once_more_and_the_rest_goes_on(
    tmp_path: Path, vllm_tool: Tool, demo_model: Path, loss: str
) -> None:
    before, lost = family(), LOSSES[loss]
    options = {"api_servers": lost.api_servers}
    job = serve_job(tmp_path / "w", vllm_tool, demo_model, options=options, stall_timeout_s=lost.stall_s)
    served, notes = serving(job, tmp_path / "results")
    asked = requests(NUM, max_tokens=LONG)
    with served:
        thread = harm_after(5, notes, lost.harm)
        arm = served.generate(step(asked))
        thread.join()
        answers = arm.answers()
    assert len(notes.notes) == 1
    assert lost.said in notes.notes[0]
    assert "starting it once more" in notes.notes[0]
    assert {answer.id for answer in answers} == {request.id for request in asked}
    assert len(answers) == NUM
    assert {answer.status for answer in answers} <= {"ok", "truncated"}
    assert not (family() - before) & gpu_holders()


@pytest.mark.parametrize("first_harm", [kill_server])
def test_a_server_that_is_lost_twice_ends_the_arm_and_keeps_what_came(
    tmp_path: Path, vllm_tool: Tool, demo_model: Path, first_harm: Callable[[], None]
) -> None:
    before = family()
    served, notes = serving(
        serve_job(tmp_path / "w", vllm_tool, demo_model, stall_timeout_s=120.0), tmp_path / "results"
    )
    again = harm_again(served, notes, first_harm)
    with served, pytest.raises(DiedError, match="was ended by SIGKILL"):
        served.generate(step(requests(NUM, max_tokens=LONG)))
    again.join()
    kept = list((tmp_path / "results").rglob("answers.jsonl"))
    assert len(kept) == 1
    assert 5 <= len(kept[0].read_text().splitlines()) < NUM
    assert not family() - before


def harm_again(served: Serving, notes: Notes, harm: Callable[[], None]) -> threading.Thread:
    """Does `harm` to the first server and to the second."""

    def main() -> None:
        wait_for(lambda: notes.num_done >= 3, 300, "answers of the first server")
        harm()
        wait_for(lambda: bool(notes.notes), 60, "the note on the restart")
        done = notes.num_done
        wait_for(lambda: notes.num_done >= done + 3, 300, "answers of the second server")
        harm()

    thread = threading.Thread(target=main, daemon=True)
    thread.start()
    return thread


@pytest.mark.gpu
def test_memory_that_runs_out_while_scoring_is_told_with_the_knob(
    tmp_path: Path, vllm_tool: Tool, demo_model: Path
) -> None:
    """Scoring lies outside vLLM's memory profile (vllm#5907): here its allocator gets a fiftieth of the GPU."""
    options = {
        "kv_cache_memory_bytes": GIB, "score_memory_bytes": 64 * GIB, "model_runner": "v1",
        "env": {"VLLM_USE_FLASHINFER_SAMPLER": "0", "PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:0.018"},
    }  # fmt: skip
    job = serve_job(tmp_path / "w", vllm_tool, demo_model, options=options, max_model_len=8000, needs_scores=True)
    long = ScoreRequest(
        id="long", messages=(Message(role="user", content="Go on."),), completion_ids=(504, 1002, 30) * 2400, top_k=20
    )
    with ENGINE.open(job) as session, pytest.raises(DiedError) as caught:
        list(session.score([long]))
    summary = f"{caught.value.message.partition('  | ')[0]} {caught.value.advice}"
    assert "out of memory" in summary
    assert "score_memory_bytes" in summary


def test_logits_that_are_not_numbers_are_counted_and_are_a_defect(
    tmp_path: Path, vllm_tool: Tool, demo_model: Path
) -> None:
    def poison(tensors: Tensors) -> None:
        dtype, shape, data = tensors[NORM]
        values = np.frombuffer(data, dtype=np.float16).copy()
        values[0] = np.nan
        tensors[NORM] = (dtype, shape, values.tobytes())

    model = harmed(demo_model, tmp_path / "model", poison)
    job: ServeJob = serve_job(tmp_path / "w", vllm_tool, model, options={"count_nans": True})
    with ENGINE.open(job) as session:
        answers = list(session.generate(requests(6, temperature=0.0, logprobs=True)))
        facts = session.facts
    assert len(answers) == 6
    assert facts.details["corrupted_requests"] >= 6
    assert any("NaN logits" in note for note in facts.notes)
    for answer in answers:
        seen = defects.Seen(answer.text, finish_reason=answer.finish_reason, logprobs=answer.logprobs)
        assert "nonfinite_logprob" in {hit.name for hit in defects.find(seen)}, answer


def test_a_queue_far_longer_than_a_batch_is_worked_off(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    """Waiting is no fault: the watchdog looks at progress, not at how long a request has been waiting."""
    num = 400 if GPUS else 40
    options = {"max_num_seqs": 4}
    job = serve_job(
        tmp_path / "w", vllm_tool, demo_model, options=options, concurrency=num, stall_timeout_s=20.0, max_model_len=256
    )
    with ENGINE.open(job) as session:
        answers = list(session.generate(requests(num)))
        facts = session.facts
    assert {answer.status for answer in answers} <= {"ok", "truncated"}
    assert len(answers) == num
    assert facts.details["queue_time_s"] > 1
    assert max(answer.latency_s for answer in answers) > 4 * min(answer.latency_s for answer in answers)


@pytest.mark.gpu
def test_a_kv_cache_that_overflows_is_told(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    options = {"kv_cache_memory_bytes": 24 << 20, "max_num_seqs": 16}  # about 1,100 tokens for 16 sequences of 350
    job = serve_job(tmp_path / "w", vllm_tool, demo_model, options=options, max_model_len=400)
    with ENGINE.open(job) as session:
        answers = list(session.generate(requests(16, max_tokens=300)))
        facts = session.facts
    assert {answer.status for answer in answers} <= {"ok", "truncated"}
    assert facts.details["preemptions"] > 0
    assert facts.details["kv_cache_usage_peak"] > 0.5
    assert any("preemptions" in note for note in facts.notes)


def test_a_process_table_without_servers_remains() -> None:
    """What the tests above started is gone, whatever they found."""
    assert not [child for child in psutil.Process().children() if "vllm" in " ".join(child.cmdline())]
