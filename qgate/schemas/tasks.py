"""What lm-eval asks of a model, written down: requests as tokens, documents, and what its scores mean. Data only."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from qgate.schemas.base import Frozen, Stored
from qgate.schemas.evalset import Message


class TaskSampling(Frozen):
    """How one answer is sampled, as the task says it."""

    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    max_tokens: int = Field(ge=1)


class TaskRequest(Frozen):
    """One thing that lm-eval asks: an answer (`generate`), or how likely a continuation is (`rank`)."""

    id: str = Field(description="`item/0`, `item/1` and so on: the requests of one document, in lm-eval's order")
    item: str
    kind: Literal["generate", "rank"]
    args_sha256: str = Field(description="Hash over lm-eval's own arguments: the same when its answer is handed back")
    messages: tuple[Message, ...] = Field(min_length=1, description="The prompt for a person to read")
    prompt_ids: tuple[int, ...] = Field(min_length=1, description="The prompt as the model gets it")
    continuation: str | None = None
    continuation_ids: tuple[int, ...] | None = None
    stop: tuple[str, ...] | None = None
    sampling: TaskSampling | None = None


class TaskDoc(Frozen):
    """One document of a task: an item of the set."""

    item: str = Field(description="`task:hash of the document`")
    task: str
    group: str | None
    target: str
    messages: tuple[Message, ...]
    options: tuple[str, ...] = Field(
        description="What each of its first requests stands for, where options are ranked; empty where an answer is written"
    )


class TaskFacts(Frozen):
    """What decides one task's numbers beside the model."""

    metric: str = Field(description="The score, as `name,filter`")
    version: str
    num_fewshot: int | None
    num_docs: int = Field(description="Documents that the task has, whatever the limit")
    config_sha256: str = Field(description="Hash over the whole configuration as lm-eval resolved it")


class TaskSet(Stored):
    """tasks.json: tasks of lm-eval, made ready to be asked."""

    KIND: ClassVar[str] = "lm_eval_tasks"

    tasks: dict[str, TaskFacts] = Field(min_length=1)
    num_truncated: int = Field(description="Prompts that lm-eval cut on the left to fit the model's context")
    packages: dict[str, str]
