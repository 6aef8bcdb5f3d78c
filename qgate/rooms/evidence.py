"""Finished arms in, the judge's evidence out: every answer scored, searched and compared. Reads the store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path

import numpy as np

from qgate.errors import EvalsetError
from qgate.io.score_log import read_scores
from qgate.judge.observe import Beside, Place, came, observe
from qgate.plan import GenerateStep, item_of
from qgate.rooms.arms import Arm
from qgate.rooms.prepare import Prepared
from qgate.rooms.rankings import ranked_rows
from qgate.rooms.work import ArmKey, Work, key_of
from qgate.schemas.answers import Answer, Sampling, TokenScores
from qgate.schemas.evalset import Item
from qgate.schemas.evidence import Evidence, Row
from qgate.schemas.recipe import BASELINE

Answerer = tuple[str, int]
"""(variant, replicate)."""
Answers = Mapping[Answerer, Mapping[str, Answer]]
"""By who answered, then by request id: all answers to one set with one profile, of which only one is held at a time."""


def gather(prepared: Prepared, work: Work) -> Evidence:
    """Everything that the verdict rests on. Raises ArtefactError, EvalsetError (a scorer that fails)."""
    rows: list[Row] = []
    prompts = _Prompts()
    nll = _nll(work)
    for _, group in groupby(prepared.plan.generate, key=lambda step: (step.evalset, step.profile)):
        arms = [(step, arm) for step in group if (arm := work.generated.get(key_of(step))) is not None]
        answers = {_who(step): {answer.id: answer for answer in arm.answers()} for step, arm in arms}
        prompts.compare(answers)
        rows += _rows(prepared, work, [step for step, _ in arms], answers, nll)
    return Evidence(
        rows=(*rows, *ranked_rows(prepared, work)),
        token_scores=_TokenScores(work.forced),
        reference_scores=_TokenScores(work.references),
        precisions={name: checkpoint.precision for name, checkpoint in work.checkpoints.items()},
        engine=prepared.engine.name,
        invalid={**prompts.differing(), **work.failures},
        prompts={tuple(key.split("/", 1)): _prompt(item) for key, item in prepared.items.items()},  # type: ignore[misc]
    )


def _who(step: GenerateStep) -> Answerer:
    return step.variant, step.replicate


def _rows(
    prepared: Prepared,
    work: Work,
    steps: Sequence[GenerateStep],
    answers: Answers,
    nll: Mapping[Answerer, Mapping[str, float]],
) -> Iterator[Row]:
    """The rows of `steps`, one after the other.

    They are made request by request: what the detectors work out of a prompt they remember for the next arm's answer.
    """
    asked: dict[str, list[tuple[GenerateStep, Sampling]]] = defaultdict(list)
    for step in steps:
        for request in step.requests:
            asked[request.id].append((step, request.sampling))
    rows: dict[Answerer, list[Row]] = {_who(step): [] for step in steps}
    for request_id, askers in asked.items():
        item = prepared.items[item_of(request_id)]
        for step, sampling in askers:
            who = _who(step)
            answer = answers[who][request_id]
            given = work.task_scores.get((*who, step.evalset))
            score = _score(prepared, item, answer) if given is None else given.get(item.id)
            place = Place(*who, step.evalset, step.profile, item, sampling)
            beside = _beside(who, request_id, answers)
            rows[who].append(observe(place, answer, beside, score, nll.get(who, {}).get(request_id)))
    return chain.from_iterable(rows.values())


def _beside(who: Answerer, request_id: str, answers: Answers) -> Beside:
    variant, replicate = who
    baseline = None if who == (BASELINE, 0) else answers.get((BASELINE, 0), {}).get(request_id)
    return Beside(baseline, answers.get((variant, 0), {}).get(request_id) if replicate else baseline)


def _score(prepared: Prepared, item: Item, answer: Answer) -> float | None:
    if not came(answer):
        return None
    try:
        score = prepared.scorers[item.scorer.name](answer.text or "", item.scorer.args, item.language)
    except Exception as error:
        raise EvalsetError(f"the scorer {item.scorer.name!r} fails on item {item.id}: {error}") from error
    if not 0 <= score <= 1:
        raise EvalsetError(f"the scorer {item.scorer.name!r} gives {score} on item {item.id}; a score is in [0, 1]")
    return float(score)


def _nll(work: Work) -> dict[tuple[str, int], dict[str, float]]:
    """By arm and request id: mean negative log-likelihood per token of the answer under the baseline, in nats."""
    own = {key: arm for key, arm in work.forced.items() if key[:2] == (BASELINE, 0)}
    found: dict[tuple[str, int], dict[str, float]] = {}
    for (variant, replicate, _, _), arm in (*work.under_baseline.items(), *own.items()):
        means = {scores.id: -float(np.mean(scores.logprobs)) for scores in read_scores(arm.folder)}
        found.setdefault((variant, replicate), {}).update(means)
    return found


class _TokenScores(Mapping[str, Mapping[str, TokenScores]]):
    """Read as they are asked for, one arm's at a time: nothing else is so large, and a stored verdict asks for none."""

    def __init__(self, arms: Mapping[ArmKey, Arm]) -> None:
        self._folders: dict[str, list[Path]] = {}
        for (variant, replicate, _, _), arm in arms.items():
            self._folders.setdefault(f"{variant}#{replicate}" if replicate else variant, []).append(arm.folder)

    def __getitem__(self, arm: str) -> dict[str, TokenScores]:
        return {scores.id: scores for folder in self._folders[arm] for scores in read_scores(folder)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)


class _Prompts:
    """Who was not asked the same tokens as the baseline: another chat template or tokenizer, so nothing compares."""

    def __init__(self) -> None:
        self._num: Counter[Answerer] = Counter()
        self._differ: dict[Answerer, list[str]] = defaultdict(list)

    def compare(self, answers: Answers) -> None:
        """Count the answers to one set with one profile."""
        reference = answers.get((BASELINE, 0), {})
        for who, mine in answers.items():
            self._num[who] += len(mine)
            self._differ[who] += [key for key, answer in mine.items() if _differs(answer, reference.get(key))]

    def differing(self) -> dict[str, str]:
        """Variant to what is wrong."""
        return {
            variant: f"its prompts are other tokens than the baseline's in {len(differ)} of {self._num[variant, replicate]} "
            f"requests, first {min(differ)}: its chat template or tokenizer differs"
            for (variant, replicate), differ in self._differ.items()
            if differ
        }


def _differs(answer: Answer, other: Answer | None) -> bool:
    hashes = {a.prompt_token_ids_sha256 for a in (answer, other) if a is not None and a.prompt_token_ids_sha256}
    return len(hashes) > 1


def _prompt(item: Item) -> str:
    return "\n\n".join(message.content for message in item.messages)
