"""Servers for the GPU suite: small ones, many to a GPU; who holds the GPU; requests; a serving that restarts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from qgate.engines.vllm import ENGINE, VllmOptions
from qgate.engines.vllm_options import ONE_SERVER, SEVERAL_SERVERS
from qgate.io import checkpoint, host, proc
from qgate.io.store import Store
from qgate.keys import EngineIdentity
from qgate.plan import GenerateStep
from qgate.ports import ServeJob, Tool
from qgate.rooms.arms import Bench, Serving
from qgate.schemas.answers import GenerateRequest, Sampling
from qgate.schemas.evalset import Message
from tests.processes import is_alive

GPUS = host.gpus()
GIB = 1 << 30
ON_GPU: dict[str, Any] = {
    "enforce_eager": True, "kv_cache_memory_bytes": 2 * GIB, "max_num_seqs": 32, "score_memory_bytes": GIB,
    "env": {"VLLM_USE_FLASHINFER_SAMPLER": "0"},
}  # fmt: skip
"""Eager: a start takes half the time. A KV cache of a given size: nothing is profiled."""
ON_CPU: dict[str, Any] = {
    "enforce_eager": True, "kv_cache_memory_bytes": GIB, "max_num_seqs": 32,
    "env": {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"},
}  # fmt: skip
SMALL = ON_GPU if GPUS else ON_CPU


def serve_job(
    folder: Path, tool: Tool, model: Path, *, options: dict[str, Any] | None = None, **changes: Any
) -> ServeJob:
    """A job for a small server; `options` over the small ones, an option of None left to its default."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {name: value for name, value in (SMALL | (options or {})).items() if value is not None}
    job: dict[str, Any] = {
        "checkpoint": model, "name": "baseline", "dtype": "float16", "tool": tool, "concurrency": 16,
        "options": VllmOptions(**wanted), "request_timeout_s": 120.0, "stall_timeout_s": 60.0,
        "repeatable": False, "max_model_len": 1024, "log": folder / "serve.log", "work": folder,
    }  # fmt: skip
    return ServeJob(**(job | changes))


def requests(
    count: int, *, seed: int = 1, temperature: float = 0.8, max_tokens: int = 24, logprobs: bool = False
) -> list[GenerateRequest]:
    """`count` short prompts, all different."""
    sampling = Sampling(
        temperature=temperature, top_p=0.95, top_k=-1, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
        frequency_penalty=0.0, max_tokens=max_tokens, seed=seed,
    )  # fmt: skip
    asked = [f"Write a long story about the number {index} and its neighbours." for index in range(count)]
    return [
        GenerateRequest(id=text, messages=(Message(role="user", content=text),), sampling=sampling, logprobs=logprobs)
        for text in asked
    ]


def family() -> set[int]:
    """Living descendants of this process."""
    return {process.pid for process in psutil.Process().children(recursive=True) if is_alive(process)}


def server_of(name: str) -> psutil.Process:
    """The API server of the model `name` that this process started, or the parent of several."""
    return next(
        process for process in psutil.Process().children()
        if name in (words := process.cmdline()) and {ONE_SERVER, SEVERAL_SERVERS} & set(words)
    )  # fmt: skip


def engine_core_of(server: psutil.Process) -> psutil.Process:
    """The process with the model in it: the one of the server's descendants that takes most memory."""
    return max(server.children(recursive=True), key=lambda child: child.memory_info().rss)


def gpu_holders() -> set[int]:
    """Processes that nvidia-smi lists as computing, and those with a handle on a GPU device."""
    listed = proc.output(["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]) or ""
    found = {int(word) for word in listed.split() if word.isdigit()}
    return found | {process.pid for process in psutil.process_iter() if _has_gpu_open(process.pid)}


def _has_gpu_open(pid: int) -> bool:
    """Whether the process has /dev/nvidia0, 1, … open: what a CUDA context needs."""
    folder = Path(f"/proc/{pid}/fd")
    try:
        targets = [os.readlink(link) for link in folder.iterdir()]  # noqa: PTH115
    except OSError:
        return False
    return any(target.removeprefix("/dev/nvidia").isdigit() for target in targets if target.startswith("/dev/nvidia"))


def wait_for(what: Callable[[], bool], timeout_s: float, why: str) -> None:
    """Until `what()` holds. AssertionError after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {why}"
        time.sleep(0.1)


@dataclass
class Notes:
    """A watcher that keeps its notes and counts what is done."""

    notes: list[str] = field(default_factory=list)
    num_done: int = 0

    @contextmanager
    def task(self, label: str, total: int | None, done: int = 0) -> Iterator[Notes]:
        yield self

    def note(self, text: str) -> None:
        self.notes.append(text)

    def advance(self, num: int = 1) -> None:
        self.num_done += num

    def detail(self, text: str) -> None:
        pass


def serving(job: ServeJob, store: Path) -> tuple[Serving, Notes]:
    """A checkpoint as a run serves it: answers stored as they come, the server started once more when it is lost."""
    notes = Notes()
    bench = Bench(ENGINE, Store(store), notes, {})
    identity = EngineIdentity(
        name="vllm", tool=job.tool.identity, workers="", device="", dtype=job.dtype,
        options=job.options.model_dump(mode="json"), concurrency=job.concurrency, repeatable=job.repeatable,
        max_model_len=job.max_model_len,
    )  # fmt: skip
    found = checkpoint.read(job.checkpoint, job.name)
    return Serving(bench, replace(job, checkpoint=found.path), found, identity), notes


def step(asked: list[GenerateRequest], name: str = "baseline") -> GenerateStep:
    """One arm of these requests."""
    return GenerateStep(name, "set", "warm", 0, tuple(asked))
