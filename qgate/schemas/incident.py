"""The incident: one report of a bad answer, as `qgate repro` takes it. Data only, touches nothing.

Reading a file, and turning an error into a field, a line and a near match, is `qgate.io.incident`.
"""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from qgate.schemas.base import Frozen
from qgate.schemas.evalset import ScorerUse
from qgate.schemas.incident_checks import are_turns, is_prompt, is_response, wrong_values
from qgate.schemas.variant import EnvName, Source

Endpoint = Literal["/v1/chat/completions", "/v1/completions"]
CHAT: Endpoint = "/v1/chat/completions"
COMPLETION: Endpoint = "/v1/completions"
Dtype = Literal["auto", "float32", "float16", "bfloat16"]
MOST_IN_FLIGHT = 1024
VARIABLE = re.compile(r"(?!(?:sk|hf|gsk|gh[pousr]|github_pat)_)[A-Za-z_][A-Za-z0-9_]*")
"""Name of an environment variable, and not a key that was put in its place."""


class Request(Frozen):
    """The request as it was sent. Its body is kept verbatim: fields that qgate does not know stay in it."""

    endpoint: Endpoint = Field(default=CHAT, description="Path that the body was sent to")
    body: dict[str, Any] = Field(description="The JSON body, verbatim, secrets removed")

    @model_validator(mode="after")
    def _body_fits(self) -> Self:
        wanted = "messages" if self.endpoint == CHAT else "prompt"
        if not self.body.get(wanted):
            raise ValueError(f"the body of {self.endpoint} has no `{wanted}`")
        if self.endpoint == CHAT and not are_turns(self.body["messages"]):
            raise ValueError("`messages` is not a list of turns with a `role`")
        if self.endpoint == COMPLETION and not is_prompt(self.body["prompt"]):
            raise ValueError("`prompt` is neither a text nor a list of token ids (of several prompts, file one)")
        if wrong := next(wrong_values(self.body), None):
            raise ValueError(wrong)
        return self


class Side(Frozen):
    """What answered: a checkpoint that qgate can serve itself, or a server that runs already."""

    checkpoint: Source | None = Field(default=None, description="The model: `path`, `hub` with `revision`, or `gguf`")
    url: str | None = Field(default=None, description="A running server instead, e.g. http://127.0.0.1:8000/v1")
    model: str | None = Field(default=None, description="Name that the server at `url` serves it under")
    api_key_env: str | None = Field(
        default=None, description="Environment variable that holds the server's key; the key itself is never written"
    )
    engine: str | None = Field(
        default=None, description="Engine plugin; default: vllm, or openai for a `url`; of a baseline: the candidate's"
    )
    env: EnvName | None = Field(default=None, description="Environment of the engine; default: its own lock")
    options: dict[str, Any] = Field(
        default_factory=dict,
        description="The engine's own options (`qgate schema --engine NAME`); a baseline that gives neither `options` nor "
        "`launch` has the candidate's",
    )
    launch: tuple[str, ...] | str = Field(
        default=(), description="Launch arguments as they were, e.g. `--enforce-eager --kv-cache-dtype fp8`"
    )
    dtype: Dtype = Field(default="auto", description="Arithmetic; auto: what config.json says")

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.checkpoint is None) == (self.url is None):
            raise ValueError("give exactly one of `checkpoint` and `url`")
        if self.url is not None and (self.launch or self.options):
            raise ValueError("`launch` and `options` belong to a `checkpoint`: the server at a `url` runs already")
        if self.url is None and (self.model or self.api_key_env):
            raise ValueError("`model` and `api_key_env` belong to a `url`")
        if self.api_key_env is not None and not VARIABLE.fullmatch(self.api_key_env):
            raise ValueError("`api_key_env` is the name of an environment variable, not the key itself")
        return self

    @field_validator("launch")
    @classmethod
    def _splits(cls, value: tuple[str, ...] | str) -> tuple[str, ...] | str:
        if isinstance(value, str):
            try:
                shlex.split(value)
            except ValueError as error:
                raise ValueError(f"`launch` cannot be read as a shell does: {error}") from None
        return value

    @model_validator(mode="after")
    def _plain_url(self) -> Self:
        try:
            url = urlsplit(self.url or "http://none")
            is_address = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
        except ValueError:
            is_address = False
        if not is_address or "$" in url.netloc:
            raise ValueError("`url` is no http(s) address, such as http://127.0.0.1:8000/v1")
        if url.username or url.password or url.query:
            raise ValueError("`url` has a user, a password or a query, which is refused: name the key by `api_key_env`")
        return self

    @property
    def engine_name(self) -> str:
        """The engine plugin that serves it, or attaches to it."""
        return self.engine or ("vllm" if self.url is None else "openai")


class Reference(Frozen):
    """Another engine that runs the same checkpoint, so that a bad kernel is told from bad weights."""

    engine: str = Field(default="transformers", description="Engine plugin")
    env: EnvName | None = Field(default=None, description="Environment of the engine; default: its own lock")
    options: dict[str, Any] = Field(default_factory=dict, description="The engine's own options")


class Frequency(Frozen):
    """How often it happened."""

    failures: int = Field(ge=1, description="Times that the failure was seen")
    tries: int = Field(ge=1, description="Times that the request was sent")

    @model_validator(mode="after")
    def _no_more_than_tries(self) -> Self:
        if self.failures > self.tries:
            raise ValueError("`failures` is more than `tries`")
        return self

    @property
    def rate(self) -> float:
        """Failures over tries."""
        return self.failures / self.tries


class Recognition(Frozen):
    """How the failure is told from a good answer. What is named here decides; where nothing is: any defect that qgate's
    detectors find, or likeness to the filed answer."""

    defects: tuple[str, ...] = Field(default=(), description="Names of defects, any of which is the failure")
    likeness: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None, description="Least similarity to the filed answer (Indel, 0 to 1); default 0.8"
    )
    regex: str | None = Field(default=None, description="A pattern that is found in a failed answer")
    scorer: ScorerUse | None = Field(
        default=None, description="A scorer whose score of a failed answer is below `below`"
    )
    below: float = Field(default=1.0, gt=0, le=1, description="A failed answer scores less than this")
    finish_reason: str | None = Field(default=None, description="How a failed answer ends, e.g. `length`")
    error: bool = Field(default=False, description="The failure is that no answer comes (an error of the server)")
    language: str = Field(default="en", description="BCP 47 tag of the language that an answer should be in")

    @field_validator("regex")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}") from None
        return value

    @property
    def is_default(self) -> bool:
        """Whether nothing is named, so that defects and likeness decide."""
        named = (self.defects, self.regex, self.scorer, self.finish_reason, self.error)
        return not any(named) and self.likeness is None


class Incident(Frozen):
    """A report of a bad answer: the request, the answer, what gave it, and what is known about it."""

    kind: Literal["incident"] = Field(description="What this file is")
    version: Literal[1] = Field(description="Version of the incident format")
    title: str = Field(default="", description="One line for the report")
    request: Request = Field(description="The request as sent")
    answer: str | dict[str, Any] | None = Field(
        default=None, description="What came back: the text, or the whole response"
    )
    candidate: Side = Field(description="What gave the bad answer")
    baseline: Side | None = Field(
        default=None, description="The unquantized model; without it little can be told apart"
    )
    reference: Reference | None = Field(
        default=None, description="Engine to run the same checkpoint with; default: transformers, where there is one"
    )
    concurrency: int = Field(default=1, ge=1, le=MOST_IN_FLIGHT, description="Requests in flight when it happened")
    frequency: Frequency | None = Field(default=None, description="How often it happened")
    recognise: Recognition = Field(default_factory=Recognition, description="How the failure is recognised")
    tried: tuple[str, ...] = Field(default=(), description="What was tried already, and what came of it")
    log: str = Field(default="", description="Excerpt of the server's log")
    source: str = Field(default="", description="Where this was made from: curl, a log line, a run's item")
    secrets_removed: int = Field(default=0, ge=0, description="Keys and tokens that were taken out on the way in")

    @field_validator("answer")
    @classmethod
    def _is_response(cls, value: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        if isinstance(value, dict) and not is_response(value):
            raise ValueError("`answer` is neither a text nor a response of the server (`choices`, `usage`)")
        return value
