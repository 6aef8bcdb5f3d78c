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
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel

from qgate.engines import vllm_facts, vllm_log, vllm_machine, vllm_memory, vllm_options, vllm_pins, vllm_size, wire
from qgate.engines.dialogue import Dialogue
from qgate.engines.vllm_causes import diagnose
from qgate.engines.vllm_facts import Setting
from qgate.engines.vllm_machine import Machine
from qgate.engines.vllm_options import VllmOptions
from qgate.errors import EngineError, StartError
from qgate.io import host
from qgate.io.calls import Call, Target
from qgate.io.client import Client
from qgate.io.server import Launch, Server, serve
from qgate.ports import ServeJob, Session, Tool
from qgate.schemas.answers import Answer, EngineFacts, GenerateRequest, Sampling, ScoreRequest, TokenScores
from qgate.schemas.evalset import Message
from qgate.sizing.ledger import Ledger
from qgate.sizing.model import Model
from qgate.sizing.placement import Device

TRY_S = 60.0
"""Patience with one small request to a server that is ready."""
SCRAPE_S = 5.0
"""How often /metrics is read while answers come."""
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

    def __init__(self, dialogue: Dialogue, facts: EngineFacts):
        self.facts = facts
        self._dialogue = dialogue
        self._scraped_at = 0.0
        self._usage_peak = 0.0

    def generate(self, requests: Iterable[GenerateRequest]) -> Iterator[Answer]:
        """One Answer per request, as they finish; the prefix cache is cold at the first. Raises DiedError, HungError."""
        for answer in self._dialogue.answers(requests):
            yield answer
            self._scrape()
        self._scrape(now=True)

    def score(self, requests: Iterable[ScoreRequest]) -> Iterator[TokenScores]:
        """One TokenScores per request, as they finish. Raises EngineError after the others, where some cannot be had."""
        for scores in self._dialogue.scores(requests):
            yield scores
            self._scrape()
        self._scrape(now=True)

    def close(self) -> None:
        """Read the last of the facts while the server still runs."""
        self._scrape(now=True)

    def _scrape(self, *, now: bool = False) -> None:
        """Add what /metrics says to the facts; a server that does not answer changes nothing."""
        if not now and time.monotonic() - self._scraped_at < SCRAPE_S:
            return
        with suppress(EngineError):
            status, body = self._dialogue.client.get("/metrics")
            found = vllm_log.metrics(body) if status == 200 else {}
            self._usage_peak = max(self._usage_peak, found.pop("kv_cache_usage", 0.0))
            self.facts = vllm_facts.with_counters(self.facts, found, self._usage_peak)
        self._scraped_at = time.monotonic()


class VllmEngine:
    """The engine plugin."""

    name = "vllm"
    options = VllmOptions
    lock: str | None = "vllm"
    workers: tuple[Path, ...] = ()

    def device(self, tool: Tool) -> str:
        """The GPU's name, or the CPU's where the CPU build is installed or no GPU answers."""
        return vllm_machine.look(tool).device

    def devices(self, tool: Tool) -> tuple[Device, ...]:
        """The GPUs that are visible, with what is free on each; none for the CPU build."""
        return vllm_machine.devices(vllm_machine.look(tool))

    def repeats(self, tool: Tool) -> bool:
        """Its CPU build takes VLLM_BATCH_INVARIANT and does nothing with it (0.32)."""
        return not vllm_machine.is_for_cpu(vllm_machine.look(tool).packages)

    def size(self, job: ServeJob, model: Model, device: Device | None) -> Ledger:
        """What a server of `model` takes, on GPUs like `device`. Raises CheckpointError."""
        return vllm_size.size(job, _options(job), model, vllm_size.as_gpu(device))

    def split(self, options: BaseModel) -> tuple[int, int]:
        """Tensor-parallel and pipeline-parallel size."""
        found = VllmOptions.model_validate(options.model_dump())
        return found.tensor_parallel_size, found.pipeline_parallel_size

    @contextmanager
    def open(self, job: ServeJob) -> Iterator[Session]:
        """A session on `job.checkpoint`. Raises StartError with the cause, the fix and the log's tail."""
        options = _options(job)
        machine = vllm_machine.look(job.tool, vllm_options.visible(job, options))
        num_cores = host.num_cores() // job.most_together
        options = vllm_options.with_api_servers(options, job.concurrency, num_cores=num_cores, cpu=machine.gpu is None)
        bounds = _bounds(job, options, machine, _read_config(job))
        with ExitStack() as stack:
            try:
                server = stack.enter_context(serve(_launch(job, options, machine, bounds)))
            except StartError as error:
                raise vllm_size.explained(error, job) from error
            client = _client(job, server, job.stall_timeout_s)
            setting = Setting(job, options, machine, vllm_size.record(job, options, machine.gpu))
            facts = vllm_facts.at_start(setting, server, client)
            session = VllmSession(_dialogue(job, machine, bounds, client), facts)
            try:
                yield session
            finally:
                session.close()


@dataclass(frozen=True)
class _Bounds:
    """What keeps a server within its memory."""

    max_model_len: int | None
    """--max-model-len; None: vLLM's own."""
    step_tokens: int | None
    """--max-num-batched-tokens; None: vLLM's own."""
    vocab_size: int
    score_bytes: int
    """Memory that scoring may take."""


def _bounds(job: ServeJob, options: VllmOptions, machine: Machine, config: dict[str, object]) -> _Bounds:
    context, vocab_size = vllm_options.model_limits(config)
    budget = vllm_memory.budget_bytes(options.score_memory_bytes, machine.gpu)
    step = options.max_num_batched_tokens or vllm_memory.step_tokens(vocab_size or 0, budget, machine.gpu)
    length = vllm_options.max_model_len(vllm_options.wanted_length(job, config), context)
    return _Bounds(length, step, vocab_size or 0, budget)


def _launch(job: ServeJob, options: VllmOptions, machine: Machine, bounds: _Bounds) -> Launch:
    extra = ["--enable-scale-out"] if job.needs_scores and machine.guards_tokens_in else []
    lengths = (bounds.max_model_len, bounds.step_tokens)

    def probe(server: Server) -> str | None:
        if (why := _probe(job, server, options.start_timeout_s)) is None:
            _refuse_ignored(job, options, bounds, server)
        return why

    return Launch(
        name=f"the vLLM server of {job.name}",
        argv=lambda port: [*vllm_options.command(job, options, port, lengths), *extra],
        log=job.log,
        probe=probe,
        diagnose=diagnose,
        start_timeout_s=options.start_timeout_s,
        env=vllm_options.variables(job, options, cpu=machine.gpu is None),
        drop=vllm_options.not_passed_on(os.environ, options),
        port=options.port,
    )


def _dialogue(job: ServeJob, machine: Machine, bounds: _Bounds, client: Client) -> Dialogue:
    step = bounds.step_tokens or vllm_memory.default_step_tokens(machine.gpu)
    return Dialogue(
        client,
        f"the vLLM server of {job.name}",
        job.name,
        tokens_in=job.needs_scores and _takes_tokens(client, job.name),
        score_memory_bytes=bounds.score_bytes,
        score_cost_bytes=partial(vllm_memory.score_cost_bytes, vocab_size=bounds.vocab_size, step=step),
    )


def _options(job: ServeJob) -> VllmOptions:
    return VllmOptions.model_validate(job.options.model_dump())


def _client(job: ServeJob, server: Server, patience_s: float) -> Client:
    watch = replace(server.watch(patience_s), health_path="/health", pulse_path="/metrics", pulse=vllm_log.tokens_done)
    return Client(Target(server.base_url, job.concurrency, job.request_timeout_s, watch))


def _probe(job: ServeJob, server: Server, patience_s: float) -> str | None:
    """None once our server has answered a real request; else why not yet. Raises StartError where it never will."""
    client = _client(replace(job, request_timeout_s=patience_s), server, patience_s)
    try:
        if (health := client.get("/health")[0]) != 200:
            return f"its health is HTTP {health}"
        status, body = client.get("/v1/models")
    except EngineError as error:
        return error.message
    said = _object(body).get("data") if status == 200 else None
    models = said if isinstance(said, list) else []
    ours = {"id": job.name, "root": str(job.checkpoint)}.items()
    if not any(isinstance(model, dict) and ours <= model.items() for model in models):
        return f"another server answers on port {server.port}"
    call = Call("probe", "/v1/chat/completions", wire.chat_body(PROBE, job.name, cache_salt=secrets.token_hex(16)))
    (reply,) = client.run([call])
    answer = wire.answer(reply)
    if answer.status not in {"ok", "truncated"}:
        raise StartError(f"{server.launch.name} started, but its first answer failed: {answer.error}")
    if answer.token_ids is None or answer.prompt_token_ids_sha256 is None:
        raise StartError(f"{server.launch.name} does not return token ids", advice="use vLLM 0.26 or newer")
    return None


def _refuse_ignored(job: ServeJob, options: VllmOptions, bounds: _Bounds, server: Server) -> None:
    """Raise StartError where the server did not take a field, an argument or a variable as it was given."""
    sent = wire.chat_body(PROBE, job.name, cache_salt="none")
    if unknown := vllm_pins.unknown_fields(_schema(_client(job, server, TRY_S)), sent):
        raise StartError(
            f"{server.launch.name} ignores {', '.join(unknown)} of a request", advice="use vLLM 0.26 or newer"
        )
    lengths = (bounds.max_model_len, bounds.step_tokens)
    if ignored := vllm_pins.ignored(job, options, lengths, server.logged()):
        raise StartError(
            f"{server.launch.name} did not take what it was given: {'; '.join(ignored)}",
            advice="leave the option out, or use a version of vLLM that honours it",
        )


def _schema(client: Client) -> dict[str, Any]:
    """The server's own description of its requests; empty where it gives none."""
    with suppress(EngineError):
        status, body = client.get("/openapi.json", timeout_s=TRY_S)
        return _object(body) if status == 200 else {}
    return {}


def _takes_tokens(client: Client, model: str) -> bool:
    """Whether the server scores token ids through its tokens-in endpoint, tried on two ids."""
    body = wire.token_score_body([0, 1], 1, model, cache_salt=secrets.token_hex(16))
    try:
        status, said = client.post(wire.TOKENS_IN, body, timeout_s=TRY_S)
    except EngineError:
        return False
    return status == 200 and bool(_object(said).get("prompt_logprobs"))


def _object(body: str) -> dict[str, Any]:
    """What a server said; empty where it is no object, for any program may have the port."""
    with suppress(orjson.JSONDecodeError):
        found = orjson.loads(body)
        return found if isinstance(found, dict) else {}
    return {}


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
