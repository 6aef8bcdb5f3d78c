"""An item of a finished run in, an incident that asks it again out. Reads the run's folder, its store and its sets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgate.errors import IncidentError, QgateError
from qgate.io import artefact, evalsets, recipe
from qgate.io.answer_log import read_answers
from qgate.judge.observe import came
from qgate.plan import item_of, plan
from qgate.schemas.answers import Answer, GenerateRequest
from qgate.schemas.evalset import Evalset
from qgate.schemas.incident import Incident, Recognition, Reference, Request, Side
from qgate.schemas.recipe import BASELINE, Recipe
from qgate.schemas.run import ArmRecord, Run
from qgate.schemas.variant import HubSource, LocalSource, Source
from qgate.schemas.verdict import VerdictSheet

NUM_SHOWN = 8
Sets = Mapping[str, Evalset]
"""By the name that the recipe uses."""


@dataclass(frozen=True)
class Wanted:
    """Which answer of a run: its variant, and its item as `set/item`, or a request's whole id."""

    variant: str
    item: str
    profile: str | None = None
    seed: int | None = None
    sets_base: Path | None = None
    """Folder that the run's own sets are relative to: that of its recipe. None: only sets that come with qgate."""

    def fits(self, request_id: str) -> bool:
        """Whether a request's id (`set/item/profile/seed`) is meant."""
        item, profile, seed = request_id.rsplit("/", 2)
        if self.item == request_id:
            return True
        named = self.item in {item, item.partition("/")[2]}
        return named and self.profile in {None, profile} and self.seed in {None, int(seed)}


@dataclass(frozen=True)
class _Place:
    """Where things lie."""

    results: Path
    recipe: Path | None
    base: Path

    def seen_from_base(self, path: Path) -> Path:
        """As the incident file names it."""
        return Path(os.path.relpath(path.resolve(), self.base.resolve()))


def from_run(folder: Path, wanted: Wanted, base: Path) -> Incident:
    """The incident; checkpoints are named relative to `base`. Raises IncidentError, EvalsetError, ArtefactError."""
    run = artefact.load(folder / "run.json", Run)
    kept = recipe.read(folder / "recipe.yaml")
    if wanted.variant not in run.checkpoints:
        known = ", ".join(name for name in run.checkpoints if name != BASELINE)
        raise IncidentError(f"the run {run.run_id} has no variant {wanted.variant!r}", advice=f"known: {known}")
    sets = _sets(wanted.sets_base or folder, kept)
    request = _request(folder, kept, sets, wanted)
    answer = _answer(folder, run, wanted.variant, request.id)
    place = _Place(folder.resolve().parent.parent, wanted.sets_base, base)
    reference = None if kept.engine.name in {"transformers", "fake"} else Reference()
    return Incident(
        kind="incident",
        version=1,
        title=f"{wanted.variant} of {run.recipe_name}: {request.id}",
        request=Request(body=_body(request)),
        answer=_response(answer) if came(answer) else None,
        candidate=_side(place, run, kept, wanted.variant),
        baseline=_side(place, run, kept, BASELINE),
        reference=reference,
        concurrency=kept.engine.concurrency,
        recognise=Recognition(language=_language(sets, request.id)),
        log=answer.error or "",
        source=f"run {run.run_id}, {wanted.variant}, {request.id}",
    )


def _request(folder: Path, kept: Recipe, sets: Sets, wanted: Wanted) -> GenerateRequest:
    uses = tuple(use for use in kept.evalsets if use.name in sets)
    steps = plan(kept.model_copy(update={"evalsets": uses}), sets).generate
    found = [each for step in steps if step.variant == wanted.variant and step.replicate == 0 for each in step.requests]
    fitting = [each for each in found if wanted.fits(each.id)]
    if not fitting:
        worst = ", ".join(_worst(folder, wanted.variant)) or "none is listed"
        raise IncidentError(
            f"the run asked {wanted.variant} no item {wanted.item!r}",
            advice=f"its worst answers: {worst}; `qgate show` lists them",
        )
    if len(fitting) > 1:
        ids = ", ".join(each.id for each in fitting[:NUM_SHOWN])
        raise IncidentError(f"the run asked {wanted.item!r} {len(fitting)} times: {ids}", advice="name one whole id")
    return fitting[0]


def _sets(base: Path, kept: Recipe) -> Sets:
    """The sets that the run's recipe names, as far as they are found."""
    uses = [use for use in kept.evalsets if "@" in use.name or (base / use.name).exists()]
    if not uses:
        raise IncidentError("the run's sets are not beside it", advice="--recipe FILE, where the run's recipe lies")
    try:
        return {use.name: evalsets.load(use, base) for use in uses}
    except QgateError as error:
        raise IncidentError(f"the run's sets cannot be read: {error.message}", advice=error.advice) from error


def _language(sets: Sets, request_id: str) -> str:
    name, _, item_id = item_of(request_id).partition("/")
    items = (item for evalset in sets.values() if evalset.name == name for item in evalset.items)
    return next((item.language for item in items if item.id == item_id), "en")


def _worst(folder: Path, variant: str) -> Iterator[str]:
    sheet = artefact.load(folder / "verdict.json", VerdictSheet)
    examples = [example for example in sheet.examples if example.variant == variant]
    yield from (f"{example.id} ({', '.join(example.defects)})" for example in examples[:NUM_SHOWN])


def _answer(folder: Path, run: Run, variant: str, request_id: str) -> Answer:
    """The stored answer. Raises IncidentError where the store no longer has it."""
    store = folder.resolve().parent.parent / "objects" / "generations"
    for arm in run.arms:
        if _is_it(arm, variant, request_id) and (store / arm.key).is_dir():
            for answer in read_answers(store / arm.key):
                if answer.id == request_id:
                    return answer
    raise IncidentError(
        f"the answer to {request_id} is not in {store}", advice="keep the results folder whole: objects/ beside runs/"
    )


def _is_it(arm: ArmRecord, variant: str, request_id: str) -> bool:
    set_name, profile = request_id.partition("/")[0], request_id.rsplit("/", 2)[1]
    where = (arm.step, arm.variant, arm.replicate, arm.evalset, arm.profile)
    return where == ("generate", variant, 0, set_name, profile)


def _body(request: GenerateRequest) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": [turn.model_dump() for turn in request.messages]}
    return body | request.sampling.model_dump()


def _response(answer: Answer) -> dict[str, Any]:
    usage = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens}
    choice = {"message": {"role": "assistant", "content": answer.text}, "finish_reason": answer.finish_reason}
    return {"choices": [choice], "usage": {name: value for name, value in usage.items() if value is not None}}


def _side(place: _Place, run: Run, kept: Recipe, name: str) -> Side:
    args = {} if name == BASELINE else kept.variants[name].engine_args
    return Side(
        checkpoint=_checkpoint(place, run, kept, name),
        engine=kept.engine.name,
        env=kept.engine.env,
        options={**kept.engine.options, **args},
        dtype=kept.baseline.dtype,
    )


def _checkpoint(place: _Place, run: Run, kept: Recipe, name: str) -> Source:
    """The one that the run made, below its results; else what its recipe names."""
    made = place.results / run.checkpoints[name].path
    if made.is_dir():
        return LocalSource(path=place.seen_from_base(made))
    source = kept.model if name == BASELINE else kept.variants[name].checkpoint
    if isinstance(source, LocalSource) and place.recipe is not None:
        return LocalSource(path=place.seen_from_base(place.recipe / source.path))
    if isinstance(source, HubSource):
        return source
    raise IncidentError(
        f"the checkpoint of {name} is not below {place.results}", advice="--recipe FILE, where the run's recipe lies"
    )
