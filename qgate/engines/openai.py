"""Engine `openai`: attaches to a server that already runs and speaks the OpenAI protocol. Opens sockets, starts nothing.

The key comes from an environment variable that the options name; it is sent and nowhere kept. What the server runs is
its owner's word: the facts say so. Token scores need vLLM's additions to the protocol.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
from pydantic import BaseModel, Field, field_validator

from qgate.engines.dialogue import Dialogue
from qgate.errors import EngineError, StartError
from qgate.io.calls import Target, Watch
from qgate.io.client import Client
from qgate.io.flight import PROBE_TIMEOUT_S
from qgate.ports import ServeJob, Session, Tool
from qgate.schemas.answers import Answer, EngineFacts, GenerateRequest, Sampling, ScoreRequest, TokenScores
from qgate.schemas.base import Frozen

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
PORTS = {"http": 80, "https": 443}
NEUTRAL = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
"""Fields that OpenAI's own protocol lacks, and the values that leave them off."""
TOLD = ("id", "root", "parent", "max_model_len", "owned_by")
"""What a server says of a model that stays while it serves the same."""
ADDRESS = "check the server's address (`base_url`, or `url` of an incident)"
NOTE = "qgate attached to a running server: which checkpoint, kernels and settings it serves is its owner's word"


class OpenAiOptions(Frozen):
    """Where the server is. Give each variant its own `base_url` or `model` through `engine_args`."""

    base_url: str = Field(description="e.g. http://127.0.0.1:8000/v1")
    model: str | None = Field(default=None, description="Name that the server serves it under; default: its only model")
    api_key_env: str | None = Field(
        default=None, description="Environment variable that holds the key; the key itself is never written"
    )

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        url = urlsplit(value)
        if url.scheme not in PORTS or not url.hostname or url.port == 0:
            raise ValueError(f"{value!r} is no http(s) address")
        if url.username or url.password or url.query:
            raise ValueError("a base_url with a user, a password or a query is refused: name the key by `api_key_env`")
        return value.rstrip("/").removesuffix("/v1")


class OpenAiSession:
    """A checkpoint that somebody else's server serves."""

    def __init__(self, dialogue: Dialogue, facts: EngineFacts):
        self.facts = facts
        self._dialogue = dialogue

    def generate(self, requests: Iterable[GenerateRequest]) -> Iterator[Answer]:
        """One Answer per request, as they finish. Raises DiedError, HungError; EngineError for a field left unheard."""
        yield from self._dialogue.answers(self._understood(request) for request in requests)

    def score(self, requests: Iterable[ScoreRequest]) -> Iterator[TokenScores]:
        """One TokenScores per request, as they finish; of a text none where the server is not vLLM's.

        Raises EngineError where it is not, for given ids.
        """
        if self._dialogue.vllm:
            yield from self._dialogue.scores(requests)
            return
        for request in requests:
            if request.completion is None:
                raise EngineError(
                    f"{self._dialogue.name} cannot score given answers: it is not vLLM",
                    advice="serve with vLLM, use the engine `transformers`, or set token_evidence.enabled: false",
                )
            yield TokenScores.none(request)

    def _understood(self, request: GenerateRequest) -> GenerateRequest:
        if request.body is None and not self._dialogue.vllm and (unheard := _beyond_openai(request.sampling)):
            raise EngineError(
                f"{self._dialogue.name} would ignore {', '.join(unheard)} of the sampling: it is not vLLM",
                advice=f"leave them at {NEUTRAL}, or serve with vLLM",
            )
        return request


def _beyond_openai(sampling: Sampling) -> list[str]:
    values = sampling.model_dump()
    return [name for name, neutral in NEUTRAL.items() if values[name] != neutral]


class OpenAiEngine:
    """The engine plugin."""

    name = "openai"
    options = OpenAiOptions
    lock: str | None = None
    workers: tuple[Path, ...] = ()

    def device(self, tool: Tool) -> str:
        """What is known of a server that somebody else runs."""
        return "remote"

    def asked(self, options: BaseModel) -> tuple[str, str | None]:
        """Whom these options ask: one address, however this machine and a scheme's own port are written."""
        known = OpenAiOptions.model_validate(options.model_dump())
        url = urlsplit(known.base_url)
        host = "127.0.0.1" if url.hostname in LOCAL else url.hostname
        return f"{url.scheme}://{host}:{url.port or PORTS[url.scheme]}{url.path}", known.model

    def served(self, options: BaseModel) -> dict[str, Any] | None:
        """What the server says of its model, and its version where it is vLLM's; None where it says nothing now."""
        known = OpenAiOptions.model_validate(options.model_dump())
        name = f"the server at {known.base_url}"
        try:
            client = _client(known, Watch(name, PROBE_TIMEOUT_S), 1, PROBE_TIMEOUT_S)
            model = _model(client, known, name)
        except EngineError:
            return None
        version = _vllm_version(client)
        return model if version is None else model | {"version": version}

    @contextmanager
    def open(self, job: ServeJob) -> Iterator[Session]:
        """A session with the server. Raises StartError where it does not answer or does not serve the model."""
        options = OpenAiOptions.model_validate(job.options.model_dump())
        name = f"the server at {options.base_url} ({job.name})"
        watch = Watch(name, job.stall_timeout_s)
        client = _client(options, watch, job.concurrency, job.request_timeout_s)
        model = _model(client, options, name)
        version = _vllm_version(client)
        if version is not None:
            watch = replace(watch, health_path="/health")
            client = _client(options, watch, job.concurrency, job.request_timeout_s)
        facts = EngineFacts(
            engine="openai",
            version=f"vLLM {version}" if version else "unknown",
            device="remote",
            dtype=None,
            notes=(NOTE,),
            details={"base_url": options.base_url, "model": _portable(model), "concurrency": job.concurrency},
        )
        yield OpenAiSession(Dialogue(client, name, model["id"], vllm=version is not None), facts)


def _client(options: OpenAiOptions, watch: Watch, concurrency: int, timeout_s: float) -> Client:
    local = urlsplit(options.base_url).hostname in LOCAL
    return Client(Target(options.base_url, concurrency, timeout_s, watch, key=_key(options), trust_env=not local))


def _key(options: OpenAiOptions) -> str | None:
    if options.api_key_env is None:
        return None
    key = os.environ.get(options.api_key_env, "").strip()
    if not key:
        raise StartError(
            f"the environment variable {options.api_key_env} is not set", advice=f"export {options.api_key_env}=..."
        )
    if not key.isprintable():
        raise StartError(
            f"the environment variable {options.api_key_env} holds a line break or another control character",
            advice="put the key alone in it",
        )
    return key


def _model(client: Client, options: OpenAiOptions, name: str) -> dict[str, Any]:
    """What the server says of the model that is asked for."""
    try:
        status, body = client.get("/v1/models")
    except EngineError as error:
        advice = error.advice or f"{ADDRESS}, and that the server runs"
        raise StartError(error.message, advice=advice) from error
    if status != 200:
        raise StartError(f"{name} does not list its models: HTTP {status}: {body[:300]}", advice=_advice(status))
    try:
        served = {model["id"]: model for model in orjson.loads(body)["data"]}
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise StartError(f"{name} does not speak the OpenAI protocol: /v1/models answers {body[:200]!r}") from error
    wanted = options.model or (next(iter(served)) if len(served) == 1 else None)
    if wanted not in served:
        asked = f"does not serve {wanted!r}" if wanted else "serves several models"
        raise StartError(f"{name} {asked}", advice=f"set `model` to one of: {', '.join(sorted(served)) or 'none'}")
    found = served[wanted]
    return {key: found[key] for key in TOLD if found.get(key) is not None}


def _portable(model: dict[str, Any]) -> dict[str, Any]:
    """Without the folders of a path: a report that travels names none of this machine's."""
    return {key: Path(told).name if str(told).startswith("/") else told for key, told in model.items()}


def _advice(status: int) -> str:
    return "set `api_key_env` to the name of the variable that holds its key" if status in {401, 403} else ADDRESS


def _vllm_version(client: Client) -> str | None:
    with suppress(EngineError, orjson.JSONDecodeError, KeyError, TypeError):
        status, body = client.get("/version")
        if status == 200 and client.get("/health")[0] == 200:
            return str(orjson.loads(body)["version"])
    return None


ENGINE = OpenAiEngine()
