"""Packs the answers of a run for report.html: columns, each text once, compressed. Pure: a bundle in, two strings out.

The strings are base64 over zlib over JSON, which a browser undoes with DecompressionStream('deflate'). Rows come worst
first, so that what a full file leaves out is the least interesting, and it says how much that is.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qgate.reports.bundle import ReportBundle
from qgate.schemas.evidence import Row
from qgate.schemas.recipe import BASELINE

MAX_ANSWERS_BYTES = 13_500_000
MAX_REQUESTS_BYTES = 4_500_000
MAX_TEXT_CHARACTERS = 60_000

Pair = tuple[str, str, str, int]


@dataclass(frozen=True)
class Packed:
    """What a report embeds, and how much of the run is in it."""

    answers: str
    requests: str
    num_answers: int
    num_left_out: int
    num_requests_left_out: int


class Pool:
    """Gives equal values equal places, so that each is stored once."""

    def __init__(self) -> None:
        self.places: dict[Any, int] = {}

    def add(self, value: Any) -> int:
        """The place of `value`; −1 for None."""
        return -1 if value is None else self.places.setdefault(value, len(self.places))

    def values(self) -> list[Any]:
        """Every value, by place."""
        return list(self.places)


def pack(bundle: ReportBundle) -> Packed:
    """The answers of `bundle`, worst first, and their requests, within the size that a report may have."""
    references = {row.pair: row for row in bundle.rows if _is_reference(row)}
    ranked = sorted((row for row in bundle.rows if not _is_reference(row)), key=lambda row: _rank(row, references))
    count, answers = _fit(len(ranked), lambda kept: _answers(ranked[:kept], references), MAX_ANSWERS_BYTES)
    wanted = list(dict.fromkeys(row.request_id for row in ranked[:count]))
    wanted = [name for name in wanted if name in bundle.requests]
    num_requests, requests = _fit(len(wanted), lambda kept: _requests(wanted[:kept], bundle), MAX_REQUESTS_BYTES)
    return Packed(answers, requests, count, len(ranked) - count, len(wanted) - num_requests)


def damage(row: Row, reference: Row | None) -> float:
    """How bad an answer looks beside the baseline's: defects, then no answer, then lost score, then distance."""
    before, after = reference.score if reference else None, row.score
    lost = max(0.0, before - after) if before is not None and after is not None else 0.0
    distance = 1.0 - row.similarity if row.similarity is not None else 0.0
    return 8.0 * bool(row.defects) + 4.0 * (row.score is None) + 2.0 * lost + distance


def _is_reference(row: Row) -> bool:
    return row.variant == BASELINE and row.replicate == 0


def _rank(row: Row, references: Mapping[Pair, Row]) -> tuple[Any, ...]:
    return (-damage(row, references.get(row.pair)), row.variant, row.replicate, row.pair)


def _fit(total: int, build: Any, limit: int) -> tuple[int, str]:
    """The largest part of `total` found whose packed form is at most `limit` bytes long, and that form."""
    kept = total
    while True:
        packed = _compress(build(kept))
        if len(packed) <= limit or kept == 0:
            return kept, packed
        kept = min(kept - 1, int(kept * 0.95 * limit / len(packed)))


def _compress(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("ascii"), 6)).decode("ascii")


def _answers(rows: Sequence[Row], references: Mapping[Pair, Row]) -> dict[str, Any]:
    words, texts, arms, pairs = Pool(), Pool(), Pool(), Pool()
    columns: dict[str, list[Any]] = {name: [] for name in ("arm", "pair", *_OBSERVED, "identical", "div", "sim")}
    for row in rows:
        columns["arm"].append(arms.add((row.variant, row.replicate)))
        columns["pair"].append(pairs.add(row.pair))
        for name, value in _observed(row, words, texts).items():
            columns[name].append(value)
        columns["identical"].append(-1 if row.identical is None else int(row.identical))
        columns["div"].append(-1 if row.first_divergence is None else row.first_divergence)
        columns["sim"].append(_short(row.similarity))
    shown = {row.pair: row for row in reversed(rows)}
    return {
        "pairs": [_pair(references.get(pair), shown[pair], words, texts) for pair in pairs.values()],
        "rows": columns,
        "arms": [list(arm) for arm in arms.values()],
        "words": words.values(),
        "texts": [[text[:MAX_TEXT_CHARACTERS], len(text)] for text in texts.values()],
    }


_OBSERVED = ("text", "score", "tokens", "finish", "status", "defects", "latency")


def _observed(row: Row, words: Pool, texts: Pool) -> dict[str, Any]:
    """What stands on either side of the comparison."""
    hits = [[words.add(hit.name), hit.start, words.add(hit.detail)] for hit in row.defects]
    return {
        "text": texts.add(row.text),
        "score": _short(row.score),
        "tokens": row.completion_tokens,
        "finish": words.add(row.finish_reason),
        "status": words.add(row.ending),
        "defects": hits,
        "latency": _short(row.latency_s),
    }


def _pair(reference: Row | None, shown: Row, words: Pool, texts: Pool) -> dict[str, Any]:
    """What both sides share, and the baseline's answer where there is one."""
    return {
        "evalset": words.add(shown.evalset),
        "item": shown.item,
        "profile": words.add(shown.profile),
        "seed": shown.seed,
        "temperature": shown.temperature,
        "kind": words.add(shown.kind),
        "language": words.add(shown.language),
        "difficulty": shown.difficulty,
        "prompt_tokens": shown.prompt_tokens,
        "slices": dict(shown.slices),
        "base": _observed(reference, words, texts) if reference else None,
    }


def _requests(names: Sequence[str], bundle: ReportBundle) -> dict[str, Any]:
    """Request id to places in the lists of prompts and samplings, and its seed."""
    prompts, samplings, index = Pool(), Pool(), {}
    for name in names:
        request = bundle.requests[name]
        prompt = tuple((message.role, message.content) for message in request.messages)
        sampling = request.sampling.model_dump(exclude={"seed"})
        index[name] = [prompts.add(prompt), samplings.add(tuple(sampling.items())), request.sampling.seed]
    return {
        "index": index,
        "prompts": [[{"role": role, "content": text} for role, text in prompt] for prompt in prompts.values()],
        "samplings": [dict(sampling) for sampling in samplings.values()],
    }


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 4)
