"""Steps, checkpoints and engines in, content keys out. Pure.

A key holds all that can change the bytes. It names a checkpoint by its content, so steps behind a variant that is not
made yet have no key until it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qgate.plan import GenerateStep, RankStep, ScoreStep
from qgate.schemas.base import content_key
from qgate.schemas.variant import Variant

FORMAT = 1
"""Rises when the layout of stored objects changes, so that old ones are not taken for new."""


@dataclass(frozen=True)
class EngineIdentity:
    """What decides the bytes of an arm beside checkpoint and requests."""

    name: str
    tool: str
    workers: str
    device: str
    dtype: str
    options: Mapping[str, Any]
    concurrency: int
    repeatable: bool
    max_model_len: int | None = None
    """Longest context that the server is started with, where the engine is sized to the load."""
    served: Mapping[str, Any] | None = None
    """What a server that qgate attaches to said that it serves; None for engines that serve the checkpoint itself."""


def dequantize_key(gguf_sha256: str, dtype: str, tool: str, worker_sha256: str) -> str:
    """Content key of a baseline that is unpacked from a GGUF file."""
    return content_key({"format": FORMAT, "gguf": gguf_sha256, "dtype": dtype, "tool": tool, "worker": worker_sha256})


def quantize_key(
    model_digest: str, variant: Variant, options: Mapping[str, Any], tool: str, files: Mapping[str, str]
) -> str:
    """Content key of a quantized checkpoint. `files`: sha256 of the worker and of the calibration file."""
    calibration = None if variant.calibration is None else variant.calibration.model_dump(mode="json", exclude={"file"})
    return content_key(
        {
            "format": FORMAT,
            "model": model_digest,
            "quantizer": variant.quantizer,
            "options": dict(options),
            "calibration": calibration,
            "tool": tool,
            "files": dict(files),
        }
    )


def generate_key(step: GenerateStep, checkpoint_digest: str, engine: EngineIdentity) -> str:
    """Content key of an arm's answers."""
    return asked_key("requests", step, checkpoint_digest, engine)


def again_key(key: str) -> str:
    """Content key of an arm's answers once those that did not come were asked again; `key`: of the answers before."""
    return content_key({"format": FORMAT, "again": key})


def asked_key(name: str, step: GenerateStep | RankStep, checkpoint_digest: str, engine: EngineIdentity) -> str:
    """Content key of what came back for a step's requests, which count under `name`."""
    return content_key(
        {
            "format": FORMAT,
            "checkpoint": checkpoint_digest,
            "engine": engine_parts(engine),
            name: content_key([request.model_dump(mode="json", exclude_none=True) for request in step.requests]),
            "replicate": step.replicate,
        }
    )


def score_key(step: ScoreStep, checkpoint_digest: str, engine: EngineIdentity, source_key: str) -> str:
    """Content key of teacher-forced scores; `source_key` is the key of the answers that are scored."""
    return content_key(
        {
            "format": FORMAT,
            "checkpoint": checkpoint_digest,
            "engine": engine_parts(engine),
            "source": source_key,
            "top_k": step.top_k,
            "max_items": step.max_items,
            "replicate": step.replicate,
        }
    )


def judge_key(
    recipe: Mapping[str, Any], *, rows: str, token_scores: Sequence[str], rest: Mapping[str, Any], code: str
) -> str:
    """Content key of a verdict sheet: the recipe's demands, the observed rows, whose scores, and the judge itself."""
    evidence = {"rows": rows, "token_scores": list(token_scores), **rest}
    return content_key({"format": FORMAT, "recipe": dict(recipe), "evidence": evidence, "code": code})


def engine_parts(engine: EngineIdentity) -> dict[str, Any]:
    """An engine's identity as a part of a content key."""
    known = {name: value for name, value in vars(engine).items() if value is not None}
    return {**known, "options": dict(engine.options)}


def rank_key(step: RankStep, checkpoint_digest: str, engine: EngineIdentity) -> str:
    """Content key of an arm's scores of given continuations."""
    return asked_key("ranked", step, checkpoint_digest, engine)


def tasks_key(
    spec: Mapping[str, Any], *, files: Mapping[str, str], tokenizer: Mapping[str, str], tool: str, worker: str
) -> str:
    """Content key of what lm-eval asks. `files`, `tokenizer`: sha256 of the tasks' and the tokenizer's files by name."""
    parts = {"spec": dict(spec), "files": dict(files), "tokenizer": dict(tokenizer)}
    return content_key({"format": FORMAT, **parts, "tool": tool, "worker": worker})


def task_scores_key(tasks: str, arms: Sequence[str]) -> str:
    """Content key of lm-eval's scores of one arm: of what it asked, and of what was answered."""
    return content_key({"format": FORMAT, "tasks": tasks, "arms": list(arms)})
