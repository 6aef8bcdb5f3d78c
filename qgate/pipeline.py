"""A loaded recipe in, a judged run out: the only file that knows the order of the stages.

    sets, tools ─▶ baseline checkpoint ─▶ prechecks ─▶ per checkpoint: quantize ─▶ generate ─▶ score ─▶ rows ─▶ verdict

With `engine.parallel: 1` one checkpoint is served at a time, the baseline first. With more, servers are up side by side
and the baseline stays up until it has scored what the variants wrote; `auto` does so where the ledger says that they fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from qgate.errors import CheckpointError, EnvError, Interrupted, StoreError, UserError, WorldError
from qgate.io import proc
from qgate.io.recipe import LoadedRecipe
from qgate.ports import Watcher
from qgate.rooms.admission import admit
from qgate.rooms.arms import Serving
from qgate.rooms.evidence import gather
from qgate.rooms.judgement import judge_once
from qgate.rooms.memory import check_split, is_split, keep_baseline, models
from qgate.rooms.prepare import Prepared, claim_folder, prepare
from qgate.rooms.publish import publish
from qgate.rooms.tasks import obtain_tasks, score_tasks
from qgate.rooms.variants import obtain_baseline, obtain_variant, precheck_variants
from qgate.rooms.work import Work
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.recipe import BASELINE
from qgate.schemas.run import Run
from qgate.schemas.verdict import VerdictSheet


@dataclass(frozen=True)
class Outcome:
    """A judged run and where its reports lie."""

    run: Run
    sheet: VerdictSheet
    folder: Path


def run(loaded: LoadedRecipe, results: Path, watcher: Watcher) -> Outcome:
    """Do all that is not stored yet, judge, and write the reports. Raises QgateError."""
    started = datetime.now(UTC)
    prepared = claim_folder(prepare(loaded, results, watcher))
    work = Work()
    with _stage(work, "model"):
        work.checkpoints[BASELINE] = obtain_baseline(prepared)
        if (refusal := admit(prepared, work, BASELINE)) is not None:
            raise CheckpointError(f"{BASELINE}: {refusal}")
        precheck_variants(prepared, work.checkpoints[BASELINE])
        prepared = obtain_tasks(prepared, work.checkpoints[BASELINE])
    with _stage(work, "arms"):
        width = _width(prepared, work.checkpoints[BASELINE])
        prepared = replace(prepared, most_together=1 + width)
        if width:
            _side_by_side(prepared, work, width)
        else:
            _one_at_a_time(prepared, work)
    work.sort([BASELINE, *loaded.recipe.variants])
    with _stage(work, "rows"):
        score_tasks(prepared, work)
        evidence = gather(prepared, work)
    with _stage(work, "judge"):
        sheet = judge_once(prepared, work, evidence)
    return Outcome(*publish(prepared, work, evidence, sheet, started), folder=prepared.folder)


@contextmanager
def _stage(work: Work, name: str) -> Iterator[None]:
    """Notes the wall time of a stage."""
    began = monotonic()
    yield
    work.timings_s[name] = monotonic() - began


def _width(prepared: Prepared, baseline: Checkpoint) -> int:
    """Variants that may be served beside the baseline; 0: one checkpoint at a time. Raises CheckpointError."""
    recipe = prepared.loaded.recipe
    if is_split(prepared):
        check_split(prepared, models(prepared, baseline))
    if recipe.engine.parallel != "auto":
        return min(recipe.engine.parallel - 1, len(recipe.variants))
    if keep_baseline(prepared, baseline):
        return len(recipe.variants)
    prepared.bench.watcher.note("no GPU here holds two servers at once: one checkpoint is served at a time")
    return 0


def _one_at_a_time(prepared: Prepared, work: Work) -> None:
    with prepared.serving(work.checkpoints[BASELINE]) as baseline:
        _baseline_arms(prepared, work, baseline)
    for name in prepared.loaded.recipe.variants:
        _variant(prepared, work, name)
    with prepared.serving(work.checkpoints[BASELINE]) as baseline:
        _score(prepared, work, baseline, own=False)


def _side_by_side(prepared: Prepared, work: Work, width: int) -> None:
    """The same steps with several servers up: the baseline in this thread, at most `width` variants beside it."""
    names = list(prepared.loaded.recipe.variants)
    ready: Future[None] = Future()
    pool = ThreadPoolExecutor(width, thread_name_prefix="variant")
    try:
        variants = [pool.submit(_variant, prepared, work, name, ready) for name in names]
        with prepared.serving(work.checkpoints[BASELINE]) as baseline:
            _baseline_arms(prepared, work, baseline, ready)
            for done in variants:
                done.result()
            _score(prepared, work, baseline, own=False)
    except BaseException as error:
        if not ready.done():
            ready.set_exception(error)
        proc.stop_all()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if prepared.berths is not None:
            prepared.berths.close()
        proc.stopped()


def _baseline_arms(prepared: Prepared, work: Work, serving: Serving, ready: Future[None] | None = None) -> None:
    """Baseline and A/A answers and their own scores. A failure here ends the run: there is nothing to compare with.

    `ready` is set as soon as the baseline has answered once, for it is those answers that variants score; None where no
    two servers may be up at once.
    """
    other_load = prepared.loaded.recipe.noise_floor.concurrency
    steps = prepared.plan.asked_of(BASELINE)
    for step in steps:
        if step.replicate == 0:
            work.add_asked(step, serving.ask(step))
    if ready is not None:
        ready.set_result(None)
    for step in steps:
        if step.replicate > 0 and other_load is None:
            work.add_asked(step, serving.ask(step))
    _score(prepared, work, serving, own=True)
    if other_load is not None:
        if ready is None:
            serving.close()
        with prepared.serving(work.checkpoints[BASELINE], other_load) as loaded_otherwise:
            for step in steps:
                if step.replicate > 0:
                    work.add_asked(step, loaded_otherwise.ask(step))


def _variant(prepared: Prepared, work: Work, name: str, baseline: Future[None] | None = None) -> None:
    """Make, serve and score one variant. What breaks only this variant is noted and the run goes on."""
    try:
        _go_on(name)
        checkpoint = work.checkpoints[name] = obtain_variant(prepared, name, work.checkpoints[BASELINE])
        if (refusal := admit(prepared, work, name)) is not None:
            _failed(prepared, work, name, refusal)
            return
        with prepared.serving(checkpoint) as serving:
            for step in prepared.plan.asked_of(name):
                _go_on(name)
                work.add_asked(step, serving.ask(step))
            if baseline is not None:
                baseline.result()
            _score(prepared, work, serving, own=True)
    except (StoreError, EnvError, UserError, Interrupted):
        raise
    except WorldError as error:
        if proc.stopping():  # its server was stopped, and is not to blame
            raise
        _failed(prepared, work, name, error.message)


def _go_on(name: str) -> None:
    """Raises Interrupted where the run ends in another thread: no step is begun any more."""
    if proc.stopping():
        raise Interrupted(f"interrupted before the next step of {name}")


def _failed(prepared: Prepared, work: Work, name: str, why: str) -> None:
    prepared.bench.watcher.note(f"{name}: {why}")
    work.failures[name] = why


def _score(prepared: Prepared, work: Work, serving: Serving, *, own: bool) -> None:
    """The baseline's answers through this checkpoint (`own`), or every other arm's answers through the baseline."""
    for step in prepared.plan.score_for(serving.checkpoint.name, own=own):
        _go_on(serving.checkpoint.name)
        source = work.generated.get((*step.source, step.evalset, step.profile))
        if source is not None:
            work.add_scored(step, serving.score(step, source))
