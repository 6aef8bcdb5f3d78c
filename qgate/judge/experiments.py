"""Tries of one factor in one arm in, an experiment with its effect and bounds out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from qgate.judge.asks import Factor
from qgate.judge.effects import Count, effect, p_of_fall
from qgate.schemas.answers import Answer
from qgate.schemas.repro import Arm, Cost, Experiment, Try

EXAMPLE_CHARS = 2000


def count(tries: Sequence[Try]) -> Count:
    """Failures of those that were answered."""
    came = [each for each in tries if each.came]
    return Count(sum(each.failed for each in came), len(came))


def experiment(factor: Factor, arm: Arm, tries: Sequence[Try], filed: Count | None, *, cost: Cost) -> Experiment:
    """What the tries come to; `filed` is the candidate's count as filed, None for that experiment itself."""
    counted = count(tries)
    came = [each for each in tries if each.came]
    return Experiment(
        factor=factor.name,
        arm=arm,
        change=factor.change,
        separates=factor.separates,
        cost=cost,
        failures=counted.failures,
        tries=counted.tries,
        missing=len(tries) - counted.tries,
        effect=None if filed is None else effect(counted, filed),
        p_value=None if filed is None or not counted.tries else p_of_fall(counted, filed),
        low=counted.low if counted.tries else 0.0,
        high=counted.high if counted.tries else 1.0,
        concurrency=factor.ask.in_flight,
        temperature=factor.ask.temperature,
        prompt_sha256=tuple(sorted({each.prompt_token_ids_sha256 for each in came if each.prompt_token_ids_sha256})),
        prompt_tokens=next((each.prompt_tokens for each in came if each.prompt_tokens is not None), None),
        distinct_texts=len({each.text for each in came}),
        example=_example(tries),
    )


def refused(factor: Factor, arm: Arm, why: str, *, cost: Cost) -> Experiment:
    """An experiment that could not be run."""
    return Experiment(
        factor=factor.name, arm=arm, change=factor.change, separates=factor.separates, cost=cost, refused=why
    )


def num_nonfinite(answers: Sequence[Answer]) -> int:
    """Answers with a log-probability that is not finite."""
    return sum(any(value is None for value in answer.logprobs or ()) for answer in answers)


def _example(tries: Sequence[Try]) -> Try | None:
    """The first failed try, else the first with any defect, else the first, its text cut to what a reader needs."""
    chosen = min(tries, key=lambda each: (not each.failed, not each.defects), default=None)
    if chosen is None or chosen.text is None or len(chosen.text) <= EXAMPLE_CHARS:
        return chosen
    return chosen.model_copy(update={"text": chosen.text[:EXAMPLE_CHARS] + "…"})
