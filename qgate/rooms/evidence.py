"""Finished arms in, the judge's evidence out: every answer scored, searched and compared. Reads the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from qgate.errors import EvalsetError
from qgate.io.score_log import read_scores
from qgate.judge.observe import Beside, Place, came, observe
from qgate.plan import GenerateStep, item_of
from qgate.rooms.arms import Arm
from qgate.rooms.prepare import Prepared
from qgate.rooms.rankings import ranked_rows
from qgate.rooms.work import Work
from qgate.schemas.answers import Answer, TokenScores
from qgate.schemas.evalset import Item
from qgate.schemas.evidence import Evidence, Row
from qgate.schemas.recipe import BASELINE

ByRequest = Mapping[str, Answer]
ByArm = dict[tuple[str, int], dict[str, Answer]]


def gather(prepared: Prepared, work: Work) -> Evidence:
    """Everything that the verdict rests on. Raises ArtefactError, EvalsetError (a scorer that fails)."""
    answers = _answers(work)
    reference = answers.get((BASELINE, 0), {})
    return Evidence(
        rows=(*_rows(prepared, work, answers), *ranked_rows(prepared, work)),
        token_scores=_token_scores(work),
        precisions={name: checkpoint.precision for name, checkpoint in work.checkpoints.items()},
        engine=prepared.engine.name,
        invalid={**_prompts_that_differ(answers, reference), **work.failures},
        prompts={tuple(key.split("/", 1)): _prompt(item) for key, item in prepared.items.items()},  # type: ignore[misc]
    )


def _answers(work: Work) -> ByArm:
    """Every answer by arm and request id."""
    found: ByArm = {}
    for (variant, replicate, _, _), arm in work.generated.items():
        found.setdefault((variant, replicate), {}).update({answer.id: answer for answer in arm.answers()})
    return found


def _rows(prepared: Prepared, work: Work, answers: ByArm) -> Iterator[Row]:
    nll = _nll(work)
    for step in prepared.plan.generate:
        arm = (step.variant, step.replicate)
        if (step.variant, step.replicate, step.evalset, step.profile) in work.generated:
            given = work.task_scores.get((*arm, step.evalset))
            yield from _rows_of(prepared, step, answers, nll.get(arm, {}), given)


def _rows_of(
    prepared: Prepared, step: GenerateStep, answers: ByArm, nll: Mapping[str, float], given: Mapping[str, float] | None
) -> Iterator[Row]:
    """The rows of one arm; `given`: item to its score, where lm-eval scored them."""
    items = prepared.items
    mine = answers[step.variant, step.replicate]
    baseline = {} if (step.variant, step.replicate) == (BASELINE, 0) else answers.get((BASELINE, 0), {})
    first = answers.get((step.variant, 0), {}) if step.replicate else baseline
    for request in step.requests:
        item, answer = items[item_of(request.id)], mine[request.id]
        place = Place(step.variant, step.replicate, step.evalset, step.profile, item, request.sampling)
        beside = Beside(baseline.get(request.id), first.get(request.id))
        score = _score(prepared, item, answer) if given is None else given.get(item.id)
        yield observe(place, answer, beside, score, nll.get(request.id))


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
    arms = [(key, arm) for key, arm in work.under_baseline.items()]
    arms += [(key, arm) for key, arm in work.forced.items() if key[:2] == (BASELINE, 0)]
    found: dict[tuple[str, int], dict[str, float]] = {}
    for (variant, replicate, _, _), arm in arms:
        means = {scores.id: -float(np.mean(scores.logprobs)) for scores in read_scores(arm.folder)}
        found.setdefault((variant, replicate), {}).update(means)
    return found


def _token_scores(work: Work) -> dict[str, dict[str, TokenScores]]:
    found: dict[str, dict[str, TokenScores]] = {}
    for (variant, replicate, _, _), arm in work.forced.items():
        name = f"{variant}#{replicate}" if replicate else variant
        found.setdefault(name, {}).update(_by_id(arm))
    return found


def _by_id(arm: Arm) -> dict[str, TokenScores]:
    return {scores.id: scores for scores in read_scores(arm.folder)}


def _prompts_that_differ(answers: ByArm, reference: ByRequest) -> dict[str, str]:
    """Variants that were not asked the same tokens: another chat template or tokenizer, so nothing can be compared."""
    found: dict[str, str] = {}
    for (variant, _), mine in answers.items():
        differ = [key for key, answer in mine.items() if _differs(answer, reference.get(key))]
        if differ:
            found[variant] = (
                f"its prompts are other tokens than the baseline's in {len(differ)} of {len(mine)} requests, first "
                f"{min(differ)}: its chat template or tokenizer differs"
            )
    return found


def _differs(answer: Answer, other: Answer | None) -> bool:
    hashes = {a.prompt_token_ids_sha256 for a in (answer, other) if a is not None and a.prompt_token_ids_sha256}
    return len(hashes) > 1


def _prompt(item: Item) -> str:
    return "\n\n".join(message.content for message in item.messages)
