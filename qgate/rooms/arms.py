"""One checkpoint and its steps in, stored objects out. Serves it when something is missing, and restarts it once.

Touches the engine and the store.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self, TypeVar

from qgate.errors import ArtefactError, DiedError, EngineError, HungError, StartError, WorldError
from qgate.io import artefact, proc
from qgate.io import checkpoint as checkpoints
from qgate.io.answer_log import count_by_status, num_whole, read_answers
from qgate.io.files import write_text
from qgate.io.score_log import ScoreLog, num_positions
from qgate.io.store import Store
from qgate.keys import EngineIdentity, again_key, generate_key, rank_key, score_key
from qgate.plan import GenerateStep, RankStep, ScoreStep
from qgate.ports import Engine, ServeJob, Session, Watcher
from qgate.rooms.again import KIND, keep_come, last_key, to_ask_again
from qgate.rooms.attached import check_served
from qgate.rooms.generate import generate
from qgate.rooms.score import score, score_requests
from qgate.schemas.answers import Answer, EngineFacts, GenerateRequest, ScoreRequest
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.run import ArmRecord
from qgate.sizing.placement import Berth
from qgate.wording import counted

FACTS = "engine.json"
TIMING = "timing.json"
Room = Callable[[], AbstractContextManager[Berth]]
T = TypeVar("T")


@dataclass(frozen=True)
class Bench:
    """What every arm of a run shares."""

    engine: Engine
    store: Store
    watcher: Watcher
    requests: Mapping[str, GenerateRequest]
    """Every answer's request by id."""


@dataclass(frozen=True)
class Arm:
    """A finished step: its record and its folder in the store."""

    record: ArmRecord
    folder: Path

    @property
    def facts(self) -> EngineFacts:
        """What served it. Raises ArtefactError."""
        return artefact.load(self.folder / FACTS, EngineFacts)

    def answers(self) -> list[Answer]:
        """The answers of a generate step. Raises ArtefactError."""
        return read_answers(self.folder)


class _NoneCameError(Exception):
    """What was asked again failed again."""


class Serving:
    """A checkpoint that can be asked. The engine is opened when the first uncached step comes; leaving closes it."""

    def __init__(
        self, bench: Bench, job: ServeJob, checkpoint: Checkpoint, identity: EngineIdentity, room: Room | None = None
    ) -> None:
        """`room`: where the engine's servers are given room on GPUs, what holds it while one is up."""
        self._room = room
        self.bench = bench
        self.job = job
        self.checkpoint = checkpoint
        self.identity = identity
        self.last_facts: EngineFacts | None = None
        self._stack = ExitStack()
        self._session: Session | None = None
        self._starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the engine, if it was started."""
        session, self._session = self._session, None
        self._stack.close()
        if session is not None:
            self.last_facts = session.facts

    def ask(self, step: GenerateStep | RankStep) -> Arm:
        """What `step` asks, from the store or from the engine. Raises EngineError, StoreError."""
        return self.generate(step) if isinstance(step, GenerateStep) else self.rank(step)

    def generate(self, step: GenerateStep) -> Arm:
        """The answers of `step`, from the store or from the engine. Raises EngineError, StoreError, ArtefactError."""
        key = last_key(self.bench.store, generate_key(step, self.checkpoint.digest, self.identity))

        def make(folder: Path) -> None:
            done = num_whole(folder)
            if done < len(step.requests):
                self._open()
            with self._timed(folder, done), self.bench.watcher.task(step.label, len(step.requests), done) as task:
                self._with_session(lambda session: generate(session, step.requests, folder, task))

        folder, cached = self._obtain(KIND, key, make, step.label)
        if cached and (failed := to_ask_again(self.bench.engine, folder)):
            key, folder, cached = self._ask_again(key, failed, make, step.label)
        answers = read_answers(folder)
        if len({answer.id for answer in answers}) < len(step.requests):
            raise ArtefactError(f"{folder} lacks answers to {step.label}", advice=f"delete {folder}")
        record = self._record(step, key, folder, cached=cached).model_copy(
            update={
                "num_answers": len(answers),
                "num_by_status": count_by_status(answers),
                "completion_tokens": sum(answer.completion_tokens or 0 for answer in answers),
            }
        )
        return Arm(record, folder)

    def _ask_again(
        self, key: str, failed: frozenset[str], make: Callable[[Path], None], label: str
    ) -> tuple[str, Path, bool]:
        """Key and folder of the answers once the `failed` ones were asked again, and whether nobody could be asked.

        Where none of them came, or the server cannot be asked or does not answer, the stored ones stay, and with them all
        that rests on their key.
        """
        stored, following = self.bench.store.folder(KIND, key), again_key(key)

        def make_again(folder: Path) -> None:
            keep_come(stored, folder, TIMING)
            make(folder)
            if to_ask_again(self.bench.engine, folder) == failed:
                shutil.rmtree(folder)
                raise _NoneCameError

        self.bench.watcher.note(f"{label}: {counted(len(failed), 'answer')} did not come before, asked again now")
        try:
            return following, self._obtain(KIND, following, make_again, label)[0], False
        except _NoneCameError:
            return key, stored, False
        except (StartError, DiedError, HungError) as error:
            if proc.stopping():
                raise
            self.close()
            self._starts = 0
            self.bench.watcher.note(f"{label}: {error.message.splitlines()[0]}; what is stored counts")
            return key, stored, True

    def score(self, step: ScoreStep, source: Arm) -> Arm:
        """The scores of `source`'s answers under this checkpoint. Raises EngineError, StoreError."""
        key = score_key(step, self.checkpoint.digest, self.identity, source.record.key)
        return self._scored(step, key, score_requests(step, source.answers(), self.bench.requests))

    def rank(self, step: RankStep) -> Arm:
        """The scores of given continuations under this checkpoint. Raises EngineError, StoreError."""
        return self._scored(step, rank_key(step, self.checkpoint.digest, self.identity), step.requests)

    def _scored(self, step: ScoreStep | RankStep, key: str, requests: Sequence[ScoreRequest]) -> Arm:
        def make(folder: Path) -> None:
            done = len(ScoreLog(folder).done)
            if done < len(requests):
                self._open()
            with self._timed(folder, done), self.bench.watcher.task(step.label, len(requests), done) as task:
                self._with_session(lambda session: score(session, requests, folder, task))

        folder, cached = self._obtain("token_scores", key, make, step.label)
        record = self._record(step, key, folder, cached=cached).model_copy(
            update={"num_answers": len(requests), "completion_tokens": num_positions(folder)}
        )
        return Arm(record, folder)

    def _record(self, step: GenerateStep | ScoreStep | RankStep, key: str, folder: Path, *, cached: bool) -> ArmRecord:
        return ArmRecord(
            step=step.kind,
            variant=step.variant,
            replicate=step.replicate,
            evalset=step.evalset,
            profile=step.profile,
            key=key,
            cached=cached,
            num_answers=0,
            wall_s=_wall_s(folder),
        )

    def _obtain(self, kind: str, key: str, make: Callable[[Path], None], label: str) -> tuple[Path, bool]:
        if (found := self.bench.store.find(kind, key)) is not None:
            return found, True

        def on_wait() -> None:
            self.bench.watcher.note(f"{label}: another run is at it; waiting for its result")

        def make_of_these_bytes(folder: Path) -> None:
            try:
                make(folder)
                self._check_bytes()
                self._check_served(folder)
            except WorldError:  # a server may die of the change
                if checkpoints.changed(self.checkpoint) is not None:
                    shutil.rmtree(folder)
                raise

        return self.bench.store.obtain(kind, key, make_of_these_bytes, resumable=True, on_wait=on_wait), False

    def _check_served(self, folder: Path) -> None:
        """Raises EngineError where another server answered some of it than the one that was looked up."""
        try:
            check_served(self.bench.engine, self.job.options, self.identity.served)
        except EngineError:
            shutil.rmtree(folder)
            raise

    def _check_bytes(self) -> None:
        """Raises WorldError where other bytes lie there than were hashed: their answers would be kept as these'."""
        if (file := checkpoints.changed(self.checkpoint)) is not None:
            raise WorldError(
                f"{self.checkpoint.path} changed while it was judged: {file} is not what was hashed",
                advice="run again once nothing writes into it any more",
            )

    @contextmanager
    def _timed(self, folder: Path, num_done: int) -> Iterator[None]:
        """Leaves beside the answers what served them and how long all attempts took (nothing, if one was killed)."""
        before = _wall_s(folder) if num_done else 0.0
        (folder / TIMING).unlink(missing_ok=True)
        began = monotonic()
        try:
            yield
        finally:
            if before is not None:
                write_text(folder / TIMING, json.dumps({"wall_s": before + monotonic() - began}) + "\n")
        self._save_facts(folder)

    def _with_session(self, work: Callable[[Session], T]) -> T:
        """`work` with the open session; once, on a fresh engine, if it died or hung. Raises EngineError."""
        try:
            return work(self._open())
        except (DiedError, HungError) as error:
            if self._starts > 1 or proc.stopping():
                raise
            first_line = error.message.splitlines()[0]
            self.bench.watcher.note(f"{self.job.name}: {first_line}; starting it once more, the rest goes on")
            self.close()
            return work(self._open())

    def _open(self) -> Session:
        if self._session is None:
            self._starts += 1
            self._check_bytes()
            work = Path(tempfile.mkdtemp(prefix="start-", dir=self.job.work))  # what an earlier start left is not read
            berth = None if self._room is None else self._stack.enter_context(self._room())
            job = replace(self.job, work=work, berth=berth)
            with self.bench.watcher.task(f"{self.job.name}: starting {self.bench.engine.name}", None):
                self._session = self._stack.enter_context(self.bench.engine.open(job))
        return self._session

    def _save_facts(self, folder: Path) -> None:
        if self._session is not None:
            artefact.save(folder / FACTS, self._session.facts)
        elif self.last_facts is not None:
            artefact.save(folder / FACTS, self.last_facts)


def _wall_s(folder: Path) -> float | None:
    try:
        return float(json.loads((folder / TIMING).read_text(encoding="utf-8"))["wall_s"])
    except (OSError, ValueError, KeyError):
        return None
