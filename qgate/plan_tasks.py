"""What lm-eval asks in, steps of the plan out. Pure.

The answers that it wants written become generate steps like any other set's, under a profile of their own, since its
tasks say themselves how they sample. The continuations that it wants ranked become rank steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from qgate.plan import GenerateStep, Plan, RankStep, arms_of, scores_of
from qgate.schemas.answers import GenerateRequest, Sampling, ScoreRequest
from qgate.schemas.recipe import LM_EVAL, Recipe
from qgate.schemas.tasks import TaskRequest


def plan_tasks(recipe: Recipe, name: str, asked: Sequence[TaskRequest]) -> Plan:
    """All steps of the set `name` of lm-eval's tasks."""
    written = tuple(_written(recipe, name, each) for each in asked if each.kind == "generate")
    given = tuple(_given(name, each) for each in asked if each.kind == "rank")
    return Plan(
        generate=tuple(GenerateStep(arm, name, LM_EVAL, n, part) for arm, n, part in arms_of(recipe, written)),
        score=tuple(scores_of(recipe, name, LM_EVAL)) if written else (),
        rank=tuple(RankStep(arm, name, LM_EVAL, n, part) for arm, n, part in arms_of(recipe, given)),
    )


def task_request_id(name: str, asked: TaskRequest) -> str:
    """`evalset/item/lm-eval/number`, built as every request's id is."""
    item, number = asked.id.rsplit("/", 1)
    return f"{name}/{item}/{LM_EVAL}/{number}"


def _written(recipe: Recipe, name: str, asked: TaskRequest) -> GenerateRequest:
    assert asked.sampling is not None
    return GenerateRequest(
        id=task_request_id(name, asked),
        messages=asked.messages,
        sampling=Sampling(**asked.sampling.model_dump(), seed=int(asked.id.rsplit("/", 1)[1])),
        logprobs=recipe.token_evidence.generation_logprobs,
        prompt=asked.prompt_ids,
        stop=asked.stop or None,
    )


def _given(name: str, asked: TaskRequest) -> ScoreRequest:
    assert asked.continuation_ids is not None
    return ScoreRequest(
        id=task_request_id(name, asked),
        messages=asked.messages,
        completion_ids=asked.continuation_ids,
        top_k=1,
        prompt=asked.prompt_ids,
    )
