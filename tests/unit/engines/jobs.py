"""What the engine tests ask for: jobs, requests, sampling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from qgate.ports import ServeJob, Tool
from qgate.schemas.answers import GenerateRequest, Sampling, ScoreRequest
from qgate.schemas.evalset import Message
from tests.processes import PATIENCE_S


def sampling(**changes: Any) -> Sampling:
    fields: dict[str, Any] = {"temperature": 0.8, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "max_tokens": 64, "seed": 1}
    fields |= {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    return Sampling.model_validate(fields | changes)


def messages(text: str = "How are you?") -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


def requests(count: int, *, logprobs: bool = False, **changes: Any) -> list[GenerateRequest]:
    return [
        GenerateRequest(
            id=f"set/{i}/warm/1", messages=messages(f"Q {i}"), sampling=sampling(**changes), logprobs=logprobs
        )
        for i in range(count)
    ]


def score_requests(count: int, ids: tuple[int, ...] = (5, 6, 7), top_k: int = 20) -> list[ScoreRequest]:
    return [ScoreRequest(id=str(i), messages=messages(f"Q {i}"), completion_ids=ids, top_k=top_k) for i in range(count)]


def checkpoint(folder: Path, **config: Any) -> Path:
    path = folder / "checkpoint"
    path.mkdir(exist_ok=True)
    fields = {"max_position_embeddings": 8192, "vocab_size": 49_152} | config
    (path / "config.json").write_text(json.dumps(fields))
    return path


def job(folder: Path, options: BaseModel, **changes: Any) -> ServeJob:
    fields: dict[str, Any] = {
        "checkpoint": checkpoint(folder), "name": "awq", "dtype": "float16", "options": options,
        "tool": Tool(Path("python"), "none"), "concurrency": 8, "request_timeout_s": PATIENCE_S, "stall_timeout_s": PATIENCE_S,
        "repeatable": False, "max_model_len": 1024, "log": folder / "serve.log", "work": folder,
    }  # fmt: skip
    return ServeJob(**(fields | changes))
