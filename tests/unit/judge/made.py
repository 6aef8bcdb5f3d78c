"""Evidence made up for tests: what every arm scored, in rows that the judge reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qgate.schemas.answers import TokenScores
from qgate.schemas.evidence import Evidence, Row
from qgate.schemas.recipe import Recipe

Scores = Sequence[Sequence[float | None]]
"""[item][seed]"""


def row(variant: str = "baseline", item: int = 0, **fields: Any) -> Row:
    defaults: dict[str, Any] = {
        "replicate": 0,
        "evalset": "facts",
        "profile": "warm",
        "seed": 0,
        "temperature": 0.8,
        "kind": "fact",
        "language": "en",
        "difficulty": 1,
        "slices": {},
        "status": "ok",
        "finish_reason": "stop",
        "score": 1.0,
        "defects": (),
        "text": "an answer",
        "prompt_tokens": 40,
        "completion_tokens": 20,
        "identical": None if variant == "baseline" and not fields.get("replicate") else True,
        "first_divergence": None,
        "similarity": 1.0,
        "latency_s": 0.1,
    }
    return Row(variant=variant, item=f"i{item:04d}", **(defaults | fields))


def arm(variant: str, scores: Scores, replicate: int = 0, **fields: Any) -> list[Row]:
    """One row per item and seed; a score of None is an answer that did not come."""
    return [
        row(
            variant,
            item,
            replicate=replicate,
            seed=seed,
            score=score,
            **({"status": "error", "text": None} if score is None else {}),
            **fields,
        )
        for item, of_item in enumerate(scores)
        for seed, score in enumerate(of_item)
    ]


def evidence(baseline: Scores, variants: Mapping[str, Scores], floor: Scores | None = None) -> Evidence:
    rows = arm("baseline", baseline)
    rows += arm("baseline", baseline if floor is None else floor, replicate=1)
    for name, scores in variants.items():
        rows += arm(name, scores)
    precisions = {"baseline": "FP16"} | dict.fromkeys(variants, "W8A8")
    return Evidence(rows=tuple(rows), precisions=precisions, engine="vllm")


def recipe(criteria: Sequence[Mapping[str, Any]], variants: Sequence[str] = ("w8a8",), **tier: Any) -> Recipe:
    return Recipe.model_validate(
        {
            "qgate": 1,
            "name": "made",
            "model": {"path": "model"},
            "variants": {name: {"checkpoint": {"path": name}} for name in variants},
            "evalsets": [{"name": "facts@1"}],
            "sampling": {"warm": {"temperature": 0.8, "max_tokens": 64, "seeds": [0, 1, 2, 3]}},
            "statistics": {"resamples": 1000},
            "tiers": {"chat": {"default": variants[0], "allow": list(variants), "criteria": list(criteria)} | tier},
        }
    )


def token_scores(row: Row, logits: np.ndarray, token_ids: np.ndarray, top_k: int = 20) -> TokenScores:
    """Scores from full float64[T, V] logits."""
    logs = logits - np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1, keepdims=True))
    logs -= logits.max(-1, keepdims=True)
    top = np.argsort(-logs, axis=-1, kind="stable")[:, :top_k]
    return TokenScores(
        id="/".join(map(str, row.pair)),
        token_ids=token_ids.astype(np.int32),
        logprobs=np.take_along_axis(logs, token_ids[:, None], -1)[:, 0].astype(np.float32),
        top_ids=top.astype(np.int32),
        top_logprobs=np.take_along_axis(logs, top, -1).astype(np.float32),
    )
