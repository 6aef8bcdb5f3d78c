"""A loaded recipe in, everything its steps need out: sets, plan, tools, identities. Reads disk; starts nothing slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import count
from pathlib import Path

from pydantic import BaseModel

from qgate.crosscheck import evalset_name
from qgate.errors import EvalsetError, RecipeError
from qgate.io import checkpoint as checkpoints
from qgate.io import envs, evalsets, tensors
from qgate.io.evalset_cut import slices_of
from qgate.io.evalset_items import check_apart
from qgate.io.files import NO_PLACE, disk_errors, sha256_files
from qgate.io.leases import Leases
from qgate.io.recipe import LoadedRecipe
from qgate.io.scoring import scorers_of, with_references
from qgate.io.store import Store
from qgate.io.task_files import AskedTasks
from qgate.keys import EngineIdentity
from qgate.plan import Plan, plan
from qgate.ports import NO_TOOL, Engine, Repeatable, Scorer, ServeJob, Sized, Tool, Watcher, load_engine
from qgate.rooms import calibration
from qgate.rooms.arms import Bench, Serving
from qgate.rooms.attached import check_servers, last_said, look_up
from qgate.rooms.berths import Berths
from qgate.rooms.obtain import Shelf
from qgate.schemas.answers import GenerateRequest, ScoreRequest
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.evalset import Evalset, Item
from qgate.schemas.recipe import REFERENCES, Criterion, Recipe
from qgate.sizing.load import context_tokens, in_flight
from qgate.sizing.model import stored
from qgate.sizing.placement import Berth

OF_THE_RUN = frozenset({"evalset", "profile", "temperature"})
"""Keys that part answers without being a slice of their items."""
FindTool = Callable[[str], Tool]
"""An environment by what a recipe calls it. Raises EnvError."""


@dataclass(frozen=True)
class Prepared:
    """A recipe with all that it names looked up."""

    loaded: LoadedRecipe
    evalsets: Mapping[str, Evalset]
    """By set name without version."""
    plan: Plan
    engine: Engine
    tool: Tool
    device: str
    scorers: Mapping[str, Scorer]
    bench: Bench
    folder: Path
    """Where this run's reports and logs go."""
    tasks: Mapping[str, AskedTasks] = field(default_factory=dict)
    """Sets of lm-eval's tasks by name, once the baseline's tokenizer is there."""
    berths: Berths | None = None
    """Room on the GPUs, where qgate places the servers."""
    find_tool: FindTool = envs.resolve
    most_together: int = 1
    """Servers that may be up at once, from where that is known."""

    @cached_property
    def context(self) -> int | None:
        """Tokens that hold every prompt and answer of the run; None where the engine is not sized to its load."""
        if not isinstance(self.engine, Sized):
            return None
        return context_tokens(request for _, arm in self._arms() for request in arm)

    def _arms(self) -> Iterator[tuple[str, Sequence[GenerateRequest | ScoreRequest]]]:
        """Each variant's requests, arm by arm."""
        yield from ((step.variant, step.requests) for step in self.plan.generate)
        yield from ((step.variant, step.requests) for step in self.plan.given)

    @property
    def store(self) -> Store:
        """The results folder's objects."""
        return self.bench.store

    @property
    def shelf(self) -> Shelf:
        """Its checkpoints."""
        return Shelf(self.bench.store, self.bench.watcher)

    @cached_property
    def items(self) -> dict[str, Item]:
        """`evalset/item` to the item."""
        return {f"{name}/{item.id}": item for name, evalset in self.evalsets.items() for item in evalset.items}

    def options(self, variant: str) -> BaseModel:
        """The engine's options for one checkpoint."""
        return self.loaded.variant_engine_options.get(variant, self.loaded.engine_options)

    def identity(self, variant: str, concurrency: int) -> EngineIdentity:
        """What decides an arm's bytes beside checkpoint and requests."""
        spec = self.loaded.recipe.engine
        return EngineIdentity(
            name=self.engine.name,
            tool=self.tool.identity,
            workers=sha256_files(self.engine.workers),
            device=self.device,
            dtype=self.loaded.recipe.baseline.dtype,
            options=self.options(variant).model_dump(mode="json"),
            concurrency=concurrency,
            repeatable=spec.determinism == "repeatable",
            max_model_len=self.context,
            served=last_said(self.engine, self.options(variant), self.store.root),
        )

    def serving(self, checkpoint: Checkpoint, concurrency: int | None = None) -> Serving:
        """The checkpoint, ready to be asked; nothing is started before something is missing."""
        if not look_up(self.loaded, self.engine, checkpoint.name, self.store.root):
            self.bench.watcher.note(f"{checkpoint.name}: its server does not say what it serves; what is stored counts")
        load = concurrency or self.loaded.recipe.engine.concurrency
        job = self.job(checkpoint.name, checkpoint.path, load)
        with disk_errors(job.work):
            job.work.mkdir(parents=True, exist_ok=True)
        room = None if self.berths is None else partial(self._room, job, self.berths)
        return Serving(self.bench, job, checkpoint, self.identity(checkpoint.name, load), room)

    def _room(self, job: ServeJob, berths: Berths) -> AbstractContextManager[Berth]:
        """Room for a server, once there is some. Raises CheckpointError, StartError."""
        assert isinstance(self.engine, Sized)
        model = stored(checkpoints.read_config(job.checkpoint), tensors.read(job.checkpoint))
        need = self.engine.size(job, model, berths.devices[0]).need(self.berth_name(job.name, job.concurrency))
        return berths.hold(need, lambda: self.bench.watcher.note(f"{job.name}: waiting for room on a GPU"))

    def berth_name(self, name: str, load: int) -> str:
        """What a server's room is called: the baseline may have two, which differ in their load."""
        usual = load == self.loaded.recipe.engine.concurrency
        return f"the server of {name}" + ("" if usual else f" at {load} requests")

    def job(self, name: str, checkpoint: Path, load: int) -> ServeJob:
        """What the engine is handed to serve `checkpoint` to `load` requests at a time."""
        recipe = self.loaded.recipe
        arms = [arm for variant, arm in self._arms() if variant == name]
        return ServeJob(
            checkpoint=checkpoint,
            name=name,
            dtype=recipe.baseline.dtype,
            options=self.options(name),
            tool=self.tool,
            concurrency=load,
            request_timeout_s=recipe.engine.request_timeout_s,
            stall_timeout_s=recipe.engine.stall_timeout_s,
            repeatable=recipe.engine.determinism == "repeatable",
            max_model_len=self.context,
            log=self.folder / "logs" / f"{name}.log",
            work=self.folder / "work" / f"{name}-{load}",
            needs_scores=recipe.token_evidence.enabled or bool(self.plan.rank),
            lengths=in_flight(arms, load) if isinstance(self.engine, Sized) else (),
            most_together=self.most_together,
        )


def prepare(loaded: LoadedRecipe, results: Path, watcher: Watcher, find_tool: FindTool = envs.resolve) -> Prepared:
    """Look up all that the recipe names.

    Raises CheckpointError, EvalsetError, PluginError, RecipeError, EnvError, StoreError.
    """
    recipe = loaded.recipe
    calibration.check_files(recipe.variants.values())
    engine = load_engine(recipe.engine.name)
    check_servers(loaded, engine)
    spec = recipe.engine.env or engine.lock
    tool = NO_TOOL if spec is None else find_tool(spec)
    if recipe.engine.determinism == "repeatable":
        _check_repeats(engine, tool)
    by_use = {use.name: evalsets.load(use, loaded.base) for use in recipe.evalsets if use.lm_eval is None}
    scorers = scorers_of(by_use.values())
    by_use = {name: with_references(evalset, scorers) for name, evalset in by_use.items()}
    sets = {evalset_name(name): evalset for name, evalset in by_use.items()}
    _check_names(by_use)
    check_apart(sets.values())
    check_scopes(recipe, sets, complete=len(by_use) == len(recipe.evalsets))
    steps = plan(recipe, by_use)
    return Prepared(
        loaded=loaded,
        evalsets=sets,
        plan=steps,
        engine=engine,
        tool=tool,
        device=engine.device(tool),
        scorers=scorers,
        bench=Bench(engine, Store(results, watcher.note), watcher, requests_by_id(steps)),
        folder=results / "runs" / f"{recipe.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}",
        berths=_berths(loaded, engine, tool),
        find_tool=find_tool,
    )


def _check_repeats(engine: Engine, tool: Tool) -> None:
    """Raises RecipeError where `determinism: repeatable` would be asked of an engine that ignores it."""
    if not isinstance(engine, Repeatable) or not engine.repeats(tool):
        raise RecipeError(
            f"engine.determinism is repeatable, and the engine {engine.name} has no batch-invariant kernels here",
            advice="use the engine vllm on a GPU, or leave it out and set `concurrency: 1`",
        )


def _berths(loaded: LoadedRecipe, engine: Engine, tool: Tool) -> Berths | None:
    """Where the recipe leaves it to qgate how many servers are up: the GPUs that there are."""
    if loaded.recipe.engine.parallel != "auto" or not isinstance(engine, Sized):
        return None
    devices = engine.devices(tool)
    return Berths(devices, Leases()) if devices else None


def claim_folder(prepared: Prepared) -> Prepared:
    """The same with a run folder that is this run's alone, made here. Raises StoreError."""
    wanted = prepared.folder
    with disk_errors(wanted.parent, *NO_PLACE):  # a file there is an error, not a name that is taken
        wanted.parent.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        with disk_errors(folder), suppress(FileExistsError):
            folder.mkdir()
            return replace(prepared, folder=folder)
    raise AssertionError("count() does not end")


def requests_by_id(steps: Plan) -> dict[str, GenerateRequest]:
    """Every answer that a plan wants, by its request's id."""
    return {request.id: request for step in steps.generate for request in step.requests}


def _check_names(by_use: Mapping[str, Evalset]) -> None:
    """Refuse a folder called otherwise than its set, and one set under two names. Raises EvalsetError."""
    seen: dict[str, str] = {}
    for use, evalset in by_use.items():
        if evalset.name != evalset_name(use):
            raise EvalsetError(
                f"the folder of evaluation set {use!r} holds a set called {evalset.name!r}",
                advice=f"call the folder {evalset.name!r}: criteria, answers and reports name a set by it",
            )
        if evalset.sha256 in seen:
            raise EvalsetError(
                f"the evaluation sets {seen[evalset.sha256]!r} and {use!r} are the same bytes",
                advice="keep one: the same items twice are no more evidence",
            )
        seen[evalset.sha256] = use


def check_scopes(recipe: Recipe, sets: Mapping[str, Evalset], *, complete: bool) -> None:
    """Refuse criteria on a slice that no item is in; unless `complete`, only those on a set that is there.

    Raises EvalsetError.
    """
    for name, tier in recipe.tiers.items():
        for number, criterion in enumerate(tier.criteria):
            if complete or (criterion.evalset is not None and evalset_name(criterion.evalset) in sets):
                _check_scope(criterion, f"tiers.{name}.criteria[{number}]", sets)


def _check_scope(criterion: Criterion, field: str, sets: Mapping[str, Evalset]) -> None:
    """Refuse a slice that no item is in: its criterion could never be settled. Raises EvalsetError."""
    only = None if criterion.evalset is None else evalset_name(criterion.evalset)
    items = [item for name, evalset in sets.items() if only in {None, name} for item in evalset.items]
    if criterion.of == REFERENCES:
        items = [item for item in items if item.reference is not None]
        if not items:
            raise EvalsetError(
                f"{field}.of: no item that would be asked has a right answer in full",
                advice="give items a `reference`, or ask for it on the baseline's own answers: `of: answers`",
            )
    inside = [slices_of(item) for item in items]
    for key, value in criterion.where.items():
        if key in OF_THE_RUN:
            continue
        known = sorted({slices[key] for slices in inside if key in slices})
        inside = [slices for slices in inside if slices.get(key) == value]
        if not inside:
            advice = f"known {key}: {', '.join(known)}" if known else None
            what = "right answer that would be scored" if criterion.of == REFERENCES else "item that would be asked"
            raise EvalsetError(f"{field}.where: no {what} has {key} {value!r}", advice=advice)
    if criterion.by not in {None, *OF_THE_RUN} and not any(criterion.by in slices for slices in inside):
        known = sorted({key for slices in inside for key in slices})
        advice = f"known slices: {', '.join(known)}"
        raise EvalsetError(f"{field}.by: no item that would be asked has a slice {criterion.by!r}", advice=advice)
