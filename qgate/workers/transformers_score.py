"""Forced answers in, log-probabilities of their tokens out. Part of the worker transformers_serve; touches nothing.

Prompts and answers are read together in one causal forward, padded on the right and batched by a budget of tokens;
logits exist for a few hundred positions at a time only.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import transformers_load
import transformers_prompt
from torch import Tensor

HEAD_POSITIONS = 256
"""Positions whose logits [positions, V] are held at once."""


@dataclass
class _Forced:
    id: str
    prompt: transformers_prompt.Prompt
    completion: list[int]
    top_k: int

    @property
    def ids(self) -> list[int]:
        """What the model reads: the last token of the answer predicts nothing that is asked."""
        return self.prompt.ids + self.completion[:-1]


def score(
    loaded: transformers_load.Loaded, requests: list[dict[str, Any]], prompt_tokens: int, beat: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    """One line per request: id, prompt hash, token ids and arrays in base64 (little-endian); or id and error."""
    waiting = []
    for request in requests:
        try:
            waiting.append(_forced(loaded, request))
        except transformers_prompt.PromptError as error:
            yield {"id": request["id"], "error": str(error)}
    waiting.sort(key=lambda forced: (-len(forced.ids), forced.id))
    while waiting:
        num = max(1, prompt_tokens // len(waiting[0].ids))
        batch, waiting = waiting[:num], waiting[num:]
        yield from _score_batch(loaded, batch, beat)


def _forced(loaded: transformers_load.Loaded, request: dict[str, Any]) -> _Forced:
    prompt = transformers_prompt.encode_request(loaded.tokenizer, request)
    completion = request["completion_ids"] or transformers_prompt.encode_answer(loaded.tokenizer, request["completion"])
    forced = _Forced(request["id"], prompt, completion, request["top_k"])
    if len(forced.ids) > loaded.context:
        raise transformers_prompt.PromptError(
            f"prompt and answer have {len(forced.ids) + 1} tokens, the model's context is {loaded.context}"
        )
    if not all(0 <= token < loaded.vocab_size for token in forced.completion):
        raise transformers_prompt.PromptError(f"an answer id lies outside the vocabulary of {loaded.vocab_size}")
    return forced


def _score_batch(
    loaded: transformers_load.Loaded, batch: list[_Forced], beat: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    ids = torch.zeros(len(batch), len(batch[0].ids), dtype=torch.long)
    for row, forced in enumerate(batch):
        ids[row, : len(forced.ids)] = torch.tensor(forced.ids)
    hidden = transformers_load.forward(loaded, ids.to(loaded.device))
    beat()
    for row, forced in enumerate(batch):
        first = len(forced.prompt.ids) - 1
        own = hidden[row, first : first + len(forced.completion)]
        parts = [
            _logprobs(loaded, own[start : start + HEAD_POSITIONS], forced, start)
            for start in range(0, len(own), HEAD_POSITIONS)
        ]
        beat()
        logprobs, top_ids, top_logprobs = (torch.cat(part) for part in zip(*parts, strict=True))
        yield {
            "id": forced.id,
            "prompt_token_ids_sha256": forced.prompt.sha256,
            "token_ids": forced.completion,
            "logprobs": _base64(logprobs),
            "top_ids": _base64(top_ids),
            "top_logprobs": _base64(top_logprobs),
        }


def _logprobs(
    loaded: transformers_load.Loaded, hidden: Tensor, forced: _Forced, start: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states [n, width] -> log-probability [n] of the forced ids, ids and log-probabilities [n, K] of the top."""
    logprobs = loaded.logits(hidden).log_softmax(-1)
    wanted = torch.tensor(forced.completion[start : start + len(hidden)])[:, None]
    top = logprobs.topk(min(forced.top_k, logprobs.shape[1]))
    return logprobs.gather(1, wanted)[:, 0], top.indices.int(), top.values


def _base64(values: Tensor) -> str:
    return base64.b64encode(values.contiguous().numpy().tobytes()).decode("ascii")
