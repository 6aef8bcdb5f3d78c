"""How an arm ranks a document's given continuations in, its row out. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from qgate.judge.observe import Place
from qgate.schemas.answers import TokenScores
from qgate.schemas.evidence import Row

NOT_FINITE = "a log-probability is not a finite number"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The continuations of one document and their scores under one arm, in the same order."""

    options: tuple[str, ...]
    scores: tuple[TokenScores, ...]

    @property
    def logprobs(self) -> tuple[float, ...]:
        """ln P of each continuation."""
        return tuple(float(np.sum(scores.logprobs, dtype=np.float64)) for scores in self.scores)

    @property
    def picked(self) -> str | None:
        """What the arm would say: the likeliest option, or of a single one whether it would say it.

        None where a log-probability is not a finite number: then nothing is ranked.
        """
        logprobs = self.logprobs
        if not all(isfinite(value) for value in logprobs):
            return None
        if len(logprobs) == 1:
            return "yes" if bool(np.all(self.scores[0].top_ids[:, 0] == self.scores[0].token_ids)) else "no"
        return self.options[int(np.argmax(logprobs))].strip()


def ranked(place: Place, prompt_tokens: int, ranking: Ranking, beside: Ranking | None, score: float | None) -> Row:
    """The row of one document. `beside`: how the reference ranks it; `score`: what lm-eval made of the ranking."""
    picked = ranking.picked
    other = None if beside is None else beside.picked
    identical = None if picked is None or other is None else picked == other
    return Row(
        **place.columns(),
        status="error" if picked is None else "ok",
        finish_reason=None,
        score=None if picked is None else score,
        defects=(),
        text=picked,
        prompt_tokens=prompt_tokens,
        completion_tokens=None,
        identical=identical,
        first_divergence=None if identical in {None, True} else 0,
        similarity=None if identical is None else float(identical),
        latency_s=0.0,
        written=False,
    )
