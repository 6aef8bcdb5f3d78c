"""Tasks of lm-eval on disk: the folder that its worker filled in, requests and items out. Touches the disk.

requests.jsonl   every request, tokenised          docs.jsonl    every document
tasks.json       what the scores mean              in each arm's answers file: {id, text} or {id, logprob, is_greedy}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from qgate.errors import ArtefactError
from qgate.io import artefact
from qgate.io.evalset_items import words_of
from qgate.io.files import sha256_file, write_text
from qgate.schemas.base import content_key
from qgate.schemas.evalset import Evalset, Item, Message, ScorerUse
from qgate.schemas.recipe import LM_EVAL
from qgate.schemas.tasks import TaskDoc, TaskRequest, TaskSet

REQUESTS, DOCS, TASKS = "requests.jsonl", "docs.jsonl", "tasks.json"
DIFFICULTY = 3
"""lm-eval knows no difficulty: the middle one."""
T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class AskedTasks:
    """Tasks of lm-eval, made ready to be asked."""

    key: str
    folder: Path
    evalset: Evalset
    """Every document as an item."""
    docs: tuple[TaskDoc, ...]
    requests: tuple[TaskRequest, ...]
    facts: TaskSet

    @property
    def told(self) -> str:
        """One line for the record: lm-eval's version, and each task with its version, examples and metric."""
        tasks = [
            f"{name} version {fact.version}, {fact.num_fewshot}-shot, {fact.metric}"
            for name, fact in sorted(self.facts.tasks.items())
        ]
        cut = f"; {self.facts.num_truncated} prompts cut to fit" if self.facts.num_truncated else ""
        return f"{self.evalset.name}: lm-eval {self.facts.packages.get('lm_eval')}, {'; '.join(tasks)}{cut}"


def read(folder: Path, key: str, name: str, language: str) -> AskedTasks:
    """The set `name` that lies in `folder`. Raises ArtefactError."""
    requests = _lines(folder / REQUESTS, TaskRequest)
    docs = _lines(folder / DOCS, TaskDoc)
    facts = artefact.load(folder / TASKS, TaskSet)
    sha256 = content_key({file: sha256_file(folder / file) for file in (REQUESTS, DOCS)})
    items = tuple(_families(_item(doc, facts, language) for doc in docs))
    return AskedTasks(key, folder, Evalset(name=name, version=1, sha256=sha256, items=items), docs, requests, facts)


def _item(doc: TaskDoc, facts: TaskSet, language: str) -> Item:
    """A document as an item: lm-eval scores it, so the scorer only says by what."""
    options = " · ".join(f"“{option.strip()}”" for option in doc.options)
    shown = (*doc.messages, Message(role="user", content=f"Ranked: {options}")) if options else doc.messages
    return Item(
        id=doc.item,
        messages=shown,
        kind=doc.task,
        language=language,
        difficulty=DIFFICULTY,
        scorer=ScorerUse(name=LM_EVAL, args={"metric": facts.tasks[doc.task].metric, "target": doc.target}),
        slices={"group": doc.group} if doc.group else {},
    )


def _families(items: Iterable[Item]) -> Iterator[Item]:
    """The same items; one that asks what an earlier one asks is its twin, so that both count as one.

    Of an option that is put into a sentence, the sentence's end is not shown: there the right answer tells items apart.
    """
    first: dict[str, str] = {}
    for item in items:
        family = first.setdefault(json.dumps([words_of(item.messages), item.scorer.args["target"]]), item.id)
        yield item if family == item.id else item.model_copy(update={"twin_of": family})


def write_answers(file: Path, answers: Iterable[Mapping[str, Any]]) -> None:
    """What an arm answered, for lm-eval to score. Raises StoreError."""
    write_text(file, "".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers))


def read_scores(file: Path) -> dict[str, float]:
    """Item to lm-eval's score of it. Raises ArtefactError."""
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
        return {line["item"]: float(line["score"]) for line in lines}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtefactError(f"{file} holds no scores of lm-eval", advice=f"delete {file.parent}") from error


def _lines(file: Path, model: type[T]) -> tuple[T, ...]:
    try:
        with file.open("rb") as stream:
            return tuple(model.model_validate_json(line) for line in stream)
    except (OSError, ValidationError) as error:
        raise ArtefactError(
            f"{file} does not hold what lm-eval was to write", advice=f"delete {file.parent}"
        ) from error
