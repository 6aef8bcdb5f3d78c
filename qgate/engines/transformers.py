"""Engine `transformers`: a worker process with the model in it. The embedded default, and the reference.

A checkpoint directory in; answers and token scores out. It runs the checkpoint's arithmetic without vLLM's kernels and
needs no GPU, so it tells a bad kernel from bad weights. Touches the world through qgate.io only.
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from qgate.errors import EngineError
from qgate.io import host
from qgate.io.files import write_text
from qgate.io.mailbox import Mailbox
from qgate.io.proc import Child
from qgate.ports import ServeJob, Tool
from qgate.schemas.answers import Answer, EngineFacts, GenerateRequest, ScoreRequest, TokenScores
from qgate.schemas.base import Frozen

WORKERS = Path(__file__).resolve().parent.parent / "workers"
ENTRY = WORKERS / "transformers_serve.py"
PARTS = ("cache", "generate", "linear", "load", "packed", "prompt", "sampling", "score", "serve", "stops")
GIB = 1 << 30
ENV = {
    "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin at every barrier make this 10 times slower on busy cores
    "MALLOC_MMAP_MAX_": "0",  # memory of large tensors is used again, not returned and faulted in anew: 5 to 30 % faster
    "MALLOC_TRIM_THRESHOLD_": str(20 * GIB),
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class Options(Frozen):
    """Options of the engine `transformers`. None of them changes an answer by more than float noise, but `dtype`."""

    dtype: Literal["auto", "float32", "float16", "bfloat16"] = Field(
        default="auto", description="Arithmetic; auto: float32 on a CPU, the baseline's dtype on a GPU"
    )
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="auto: the GPU where there is one")
    batch_size: int | None = Field(
        default=None, ge=1, le=1024, description="Sequences at once; default: the engine's concurrency"
    )
    prompt_tokens: int = Field(
        default=2048, ge=1, description="Tokens of prompts, padding included, that one forward reads"
    )
    cache_gib: float = Field(default=4.0, gt=0, description="Most memory for keys and values; fewer sequences at once")
    threads: int | None = Field(default=None, ge=1, description="CPU threads; default: all that the process may use")
    start_timeout_s: float = Field(default=900.0, gt=0, description="Longest wait until the model is loaded")


class _Session:
    """A loaded checkpoint."""

    def __init__(self, mailbox: Mailbox, facts: EngineFacts) -> None:
        self.facts = facts
        self._mailbox = mailbox

    def generate(self, requests: Iterable[GenerateRequest]) -> Iterator[Answer]:
        """Answers as they finish. Raises DiedError, HungError."""
        lines = [request.model_dump(mode="json") for request in requests]
        for line in self._mailbox.ask("generate", lines) if lines else ():
            yield Answer.model_validate(line)

    def score(self, requests: Iterable[ScoreRequest]) -> Iterator[TokenScores]:
        """Scores as they finish. Raises DiedError, HungError, and EngineError for given ids that do not fit."""
        wanted = {request.id: request for request in requests}
        lines = [request.model_dump(mode="json") for request in wanted.values()]
        for line in self._mailbox.ask("score", lines) if lines else ():
            yield _scores(wanted[line["id"]], line)


def _scores(request: ScoreRequest, line: dict[str, Any]) -> TokenScores:
    if "error" in line and request.completion is not None:
        return TokenScores.none(request)
    if "error" in line:
        raise EngineError(f"cannot score {request.id}: {line['error']}")
    ids = request.completion_ids or line["token_ids"]
    num = len(ids)
    return TokenScores(
        id=request.id,
        token_ids=np.array(ids, dtype=np.int32),
        logprobs=_floats(line["logprobs"]),
        top_ids=np.frombuffer(base64.b64decode(line["top_ids"]), dtype="<i4").astype(np.int32).reshape(num, -1),
        top_logprobs=_floats(line["top_logprobs"]).reshape(num, -1),
        prompt_token_ids_sha256=line["prompt_token_ids_sha256"],
    )


def _floats(text: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float32)


class TransformersEngine:
    """Satisfies qgate.ports.Engine."""

    name = "transformers"
    options: type[Options] = Options
    lock: str | None = "llmcompressor"
    workers = tuple(WORKERS / f"transformers_{part}.py" for part in PARTS)

    def device(self, tool: Tool) -> str:
        """The GPU's name where there is one and the tool's torch can use it, else the CPU's."""
        gpus = host.gpus() if _has_cuda(tool) else []
        return gpus[0]["name"] if gpus else host.cpu_name()

    @contextmanager
    def open(self, job: ServeJob) -> Iterator[_Session]:
        """Start the worker and wait for the model. Raises StartError."""
        options = Options.model_validate(job.options.model_dump())
        threads = options.threads or len(os.sched_getaffinity(0))
        setup_file = job.work / "setup.json"
        write_text(setup_file, json.dumps(_setup(job, options, threads), indent=1))
        argv = [str(job.tool.python), str(ENTRY), str(setup_file)]
        variables = {"OMP_NUM_THREADS": str(threads), **ENV}
        started = time.monotonic()
        with Child(argv, log=job.log, env=variables) as child:
            what = f"the transformers worker of {job.name}"
            mailbox = Mailbox(child, job.work, what=what, stall_timeout_s=job.stall_timeout_s)
            said = mailbox.wait_ready(options.start_timeout_s)
            facts = EngineFacts(
                engine=self.name, argv=tuple(argv), env_vars=variables, start_s=time.monotonic() - started, **said
            )
            yield _Session(mailbox, facts)


def _setup(job: ServeJob, options: Options, threads: int) -> dict[str, Any]:
    return {
        "checkpoint": str(job.checkpoint),
        "dtype": f"auto:{job.dtype}" if options.dtype == "auto" else options.dtype,
        "device": options.device,
        "threads": threads,
        "batch_size": options.batch_size or job.concurrency,
        "prompt_tokens": options.prompt_tokens,
        "cache_bytes": int(options.cache_gib * GIB),
        "request_timeout_s": job.request_timeout_s,
        "parent": os.getpid(),
    }


def _has_cuda(tool: Tool) -> bool:
    """Whether the tool's torch was built for CUDA, by the version file that torch writes for itself."""
    for path in tool.python.parent.parent.glob("lib/python*/site-packages/torch/version.py"):
        return re.search(r"^cuda.*= '", path.read_text(encoding="utf-8"), flags=re.MULTILINE) is not None
    return False


ENGINE = TransformersEngine()
