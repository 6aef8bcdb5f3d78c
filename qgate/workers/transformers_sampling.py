"""From logits to the next token of every sequence. Part of the worker transformers_serve; touches nothing.

Semantics are vLLM's (vllm/v1/sample/sampler.py and ops/topk_topp_sampler.py): penalties, then at temperature 0 the
largest logit; otherwise temperature, min_p, top_k, top_p, and an exponential race: argmax p / q with q ~ Exp(1) per
vocabulary entry (the Gumbel-max trick), which keeps two nearly equal models on the same text for the same seed.
Every sequence has a generator of its own and sees only its own logits, so its text does not depend on its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

GREEDY_BELOW = 1e-5
"""Temperatures under this are 0, as in vLLM (_SAMPLING_EPS)."""

FIRST_CANDIDATES = 256
"""Largest logits looked at first for top_p; a flatter distribution takes a full sort."""


@dataclass
class Sampler:
    """The sampling of one request and what it remembers of its text."""

    sampling: dict[str, Any]
    prompt_ids: list[int]
    vocab_size: int
    generator: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.generator = np.random.Generator(np.random.PCG64(self.sampling["seed"]))

    # As large as the vocabulary, so not there before the first token: thousands of requests may be waiting.
    @cached_property
    def _counts(self) -> Tensor:
        """How often each token stands in the text."""
        return torch.zeros(self.vocab_size)

    @cached_property
    def _seen(self) -> Tensor:
        """Whether each token stands in prompt or text."""
        seen = torch.zeros(self.vocab_size, dtype=torch.bool)
        seen[self.prompt_ids] = True
        return seen

    @property
    def is_greedy(self) -> bool:
        """Whether the largest logit wins."""
        return self.sampling["temperature"] < GREEDY_BELOW

    @property
    def has_penalties(self) -> bool:
        """Whether the text so far changes the logits."""
        s = self.sampling
        return s["repetition_penalty"] != 1.0 or s["presence_penalty"] != 0.0 or s["frequency_penalty"] != 0.0

    def remember(self, token: int) -> None:
        """Count a sampled token towards the penalties."""
        if self.has_penalties:
            self._counts[token] += 1
            self._seen[token] = True

    def penalize(self, logits: Tensor) -> Tensor:
        """Logits [V] after the repetition penalty (prompt and text), then frequency and presence (text only)."""
        if not self.has_penalties:
            return logits
        s = self.sampling
        factor = torch.where(logits > 0, 1.0 / s["repetition_penalty"], s["repetition_penalty"])
        logits = torch.where(self._seen, logits * factor, logits)
        return logits - s["frequency_penalty"] * self._counts - s["presence_penalty"] * (self._counts > 0)

    def draw(self, logits: Tensor) -> int:
        """A token from penalized logits [V], float32 on the CPU. Uses up one draw of the generator per entry."""
        s = self.sampling
        logits = logits / s["temperature"]
        if s["min_p"] > 0:
            probabilities = logits.softmax(-1)
            logits = logits.masked_fill(probabilities < probabilities.max() * s["min_p"], -torch.inf)
        if 0 < s["top_k"] < len(logits):
            logits = logits.masked_fill(logits < logits.topk(s["top_k"]).values[-1], -torch.inf)
        probabilities = logits.softmax(-1)
        if s["top_p"] < 1:
            probabilities = _nucleus(probabilities, s["top_p"])
        race = self.generator.standard_exponential(len(logits), dtype=np.float32)
        return likeliest(probabilities / torch.from_numpy(race))


def _nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """Zero all but the likeliest entries that together reach `top_p`; at least one stays. Ties at the edge stay too."""
    for num in (FIRST_CANDIDATES, len(probabilities)):
        largest = probabilities.topk(min(num, len(probabilities))).values
        mass = largest.double().cumsum(0)
        if float(mass[-1]) >= top_p:
            break
    last = min(int((mass < top_p).sum()), len(largest) - 1)
    return probabilities.masked_fill(probabilities < largest[last], 0.0)


def likeliest(values: Tensor) -> int:
    """Index of the largest of [V], the first NaN where there is one. NumPy finds it 10 times faster than torch."""
    return int(values.numpy().argmax())


def choose(logits: Tensor, samplers: list[Sampler]) -> list[int]:
    """The next token of each row of logits [rows, V] (float32, CPU)."""
    tokens = []
    for row, sampler in enumerate(samplers):
        if sampler.has_penalties or not sampler.is_greedy:
            penalized = sampler.penalize(logits[row])
            token = likeliest(penalized) if sampler.is_greedy else sampler.draw(penalized)
        else:
            token = likeliest(logits[row])
        sampler.remember(token)
        tokens.append(token)
    return tokens


def logprob_of(logits: Tensor, token: int) -> float | None:
    """Natural log-probability of `token` under raw logits [V] (before temperature and penalties); None: not finite."""
    value = float(logits[token].double() - logits.double().logsumexp(-1))
    return value if np.isfinite(value) else None
