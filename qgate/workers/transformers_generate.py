"""Requests in, answers out as they finish: continuous batching. Part of the worker transformers_serve.

Sequences enter a free slot after their prompt was read, take one token a step together, and leave when they end.
Requests with the same prompt (other seeds, other temperatures) read it once. Touches nothing but memory and the clock.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers_cache
import transformers_load
import transformers_prompt
import transformers_sampling
import transformers_stops
from torch import Tensor


@dataclass
class Limits:
    """How much runs at once."""

    num_slots: int
    prompt_tokens: int
    """Tokens of prompts, padding included, that one forward reads."""
    cache_bytes: int
    timeout_s: float


@dataclass
class Sequence:
    """One request in flight."""

    id: str
    prompt: transformers_prompt.Prompt
    sampler: transformers_sampling.Sampler
    max_tokens: int
    wants_logprobs: bool
    stops: transformers_stops.Stops
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float | None] = field(default_factory=list)
    started: float = 0.0
    finish: str | None = None

    @property
    def need(self) -> int:
        """Positions that this sequence may fill."""
        return len(self.prompt.ids) + self.max_tokens

    def take(self, token: int, logits: Tensor, eos_ids: frozenset[int]) -> None:
        """Append a token and see whether the text ends with it."""
        self.tokens.append(token)
        if self.wants_logprobs:
            self.logprobs.append(transformers_sampling.logprob_of(logits, token))
        if token in eos_ids or self.stops.reached(self.tokens):
            self.finish = "stop"
        elif len(self.tokens) >= self.max_tokens:
            self.finish = "length"


def generate(
    loaded: transformers_load.Loaded, requests: list[dict[str, Any]], limits: Limits, beat: Callable[[], None]
) -> Iterator[dict[str, Any]]:
    """One answer (fields of qgate's Answer) per request, as they finish. `beat` is called after every forward."""
    sequences = []
    for request in requests:
        try:
            sequences.append(_sequence(loaded, request))
        except transformers_prompt.PromptError as error:
            yield _refused(request["id"], error)
    if sequences:
        yield from _Batch(loaded, sequences, limits, beat).run()


def _sequence(loaded: transformers_load.Loaded, request: dict[str, Any]) -> Sequence:
    prompt = transformers_prompt.encode_request(loaded.tokenizer, request)
    room = loaded.context - len(prompt.ids)
    if room < 1:
        raise transformers_prompt.PromptError(
            f"the prompt has {len(prompt.ids)} tokens, the model's context is {loaded.context}", prompt
        )
    sampling = request["sampling"]
    return Sequence(
        id=request["id"],
        prompt=prompt,
        sampler=transformers_sampling.Sampler(sampling, prompt.ids, loaded.vocab_size),
        max_tokens=min(sampling["max_tokens"], room),
        wants_logprobs=request.get("logprobs", False),
        stops=transformers_stops.Stops(loaded.tokenizer, request.get("stop") or ()),
    )


class _Batch:
    """The sequences of one job: waiting, longest first, and active, one per slot from 0 on."""

    def __init__(
        self,
        loaded: transformers_load.Loaded,
        sequences: list[Sequence],
        limits: Limits,
        beat: Callable[[], None],
    ) -> None:
        self.loaded, self.limits, self.beat = loaded, limits, beat
        self.waiting = deque(sorted(sequences, key=lambda s: (-s.need, s.prompt.sha256, s.id)))
        self.active: list[Sequence] = []
        self.cache = transformers_cache.SlotCache(*self._shape(self.waiting[0].need))

    def _shape(self, capacity: int) -> tuple[int, int]:
        """How many slots of this length the memory holds, no more than are asked for."""
        slot_bytes = capacity * transformers_load.cache_bytes_per_token(self.loaded)
        num_left = len(self.active) + len(self.waiting)
        return min(self.limits.num_slots, max(1, self.limits.cache_bytes // slot_bytes), num_left), capacity

    def run(self) -> Iterator[dict[str, Any]]:
        """Answers until none waits and none is active."""
        while self.waiting or self.active:
            self._fit()
            while self._may_admit():
                self._admit()
                yield from self._leave()
            if self.active:
                self._step()
                yield from self._leave()

    def _fit(self) -> None:
        """Once the long sequences are through, the memory holds more of the shorter ones."""
        if not self.waiting:
            return
        num_slots, capacity = self._shape(max(sequence.need for sequence in (*self.active, self.waiting[0])))
        if num_slots > self.cache.num_slots * 5 // 4 or (not self.active and num_slots > self.cache.num_slots):
            self.cache.resize(num_slots, capacity, len(self.active))

    def _may_admit(self) -> bool:
        """Prompts are read a few at a time, since a forward over few rows is slow."""
        free = self.cache.num_slots - len(self.active)
        return bool(self.waiting) and (free >= max(1, self.cache.num_slots // 8) or free >= len(self.waiting))

    def _admit(self) -> None:
        """Read the next prompts and give each of their sequences a slot and a first token."""
        groups: list[list[Sequence]] = []
        free, longest = self.cache.num_slots - len(self.active), 0
        while self.waiting and free:
            sequence = self.waiting[0]
            if groups and groups[-1][0].prompt.ids == sequence.prompt.ids:
                groups[-1].append(sequence)
            else:
                longest = max(longest, len(sequence.prompt.ids))
                if groups and longest * (len(groups) + 1) > self.limits.prompt_tokens:
                    break
                groups.append([sequence])
            self.waiting.popleft()
            free -= 1
        logits = self._read([group[0].prompt.ids for group in groups], [len(group) for group in groups])
        entering = [sequence for group in groups for sequence in group]
        for sequence in entering:
            sequence.started = time.monotonic()
        self.active += entering
        self._take(entering, logits)

    def _read(self, prompts: list[list[int]], copies: list[int]) -> Tensor:
        """Prompts into the next slots, each `copies` times; the logits [sum(copies), V] after their last tokens."""
        lengths = [len(ids) for ids in prompts]
        ids = torch.zeros(len(prompts), max(lengths), dtype=torch.long)
        targets, slot = [], len(self.active)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = torch.tensor(prompt)
            targets.append(list(range(slot, slot + copies[row])))
            slot += copies[row]
        self.cache.begin_prompts(lengths, targets)
        hidden = transformers_load.forward(self.loaded, ids.to(self.loaded.device), cache=self.cache)
        last = hidden[torch.arange(len(prompts)), torch.tensor(lengths) - 1]
        return self.loaded.logits(last).repeat_interleave(torch.tensor(copies), dim=0)

    def _step(self) -> None:
        """One token for every active sequence."""
        positions, mask = self.cache.begin_step(len(self.active), self.loaded.device)
        ids = torch.tensor([[sequence.tokens[-1]] for sequence in self.active], device=self.loaded.device)
        hidden = transformers_load.forward(self.loaded, ids, cache=self.cache, positions=positions, mask=mask)
        self._take(self.active, self.loaded.logits(hidden[:, 0]))

    def _take(self, sequences: list[Sequence], logits: Tensor) -> None:
        self.beat()
        tokens = transformers_sampling.choose(logits, [sequence.sampler for sequence in sequences])
        for row, (sequence, token) in enumerate(zip(sequences, tokens, strict=True)):
            sequence.take(token, logits[row], self.loaded.eos_ids)
            if sequence.finish is None and time.monotonic() - sequence.started > self.limits.timeout_s:
                sequence.finish = "timeout"

    def _leave(self) -> Iterator[dict[str, Any]]:
        """Answers of the sequences that ended; the last active ones move into their slots."""
        for slot in reversed(range(len(self.active))):
            sequence = self.active[slot]
            if sequence.finish is None:
                continue
            last = self.active.pop()
            if last is not sequence:
                self.active[slot] = last
                self.cache.move(len(self.active), slot)
            yield _answer(self.loaded, sequence, self.limits.timeout_s)


def _answer(loaded: transformers_load.Loaded, sequence: Sequence, timeout_s: float) -> dict[str, Any]:
    timed_out = sequence.finish == "timeout"
    text = loaded.tokenizer.decode(sequence.tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return {
        "id": sequence.id,
        "text": sequence.stops.cut(text),
        "token_ids": sequence.tokens,
        "logprobs": sequence.logprobs if sequence.wants_logprobs else None,
        "prompt_token_ids_sha256": sequence.prompt.sha256,
        "prompt_tokens": len(sequence.prompt.ids),
        "completion_tokens": len(sequence.tokens),
        "finish_reason": None if timed_out else sequence.finish,
        "status": "timeout" if timed_out else "ok" if sequence.finish == "stop" else "truncated",
        "error": f"not finished after {timeout_s:.0f} s" if timed_out else None,
        "latency_s": time.monotonic() - sequence.started,
    }


def _refused(name: str, error: transformers_prompt.PromptError) -> dict[str, Any]:
    answer: dict[str, Any] = {"id": name, "text": None, "status": "error", "error": str(error), "latency_s": 0.0}
    if error.prompt is not None:
        answer |= {"prompt_token_ids_sha256": error.prompt.sha256, "prompt_tokens": len(error.prompt.ids)}
    return answer
