"""A way to serve a checkpoint and a request in, as many tries as it takes out. Touches engines and the store.

At most one server is up: asking another way closes the one before. Every answer is kept as it comes, under the content
of what served it and of what was asked, so that an interrupted run asks only for what is missing. Of requests that must
be in flight together, those that came alone are asked again together.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel

from qgate.errors import DiedError, EngineError, HungError
from qgate.io.files import disk_errors
from qgate.io.try_log import TryLog
from qgate.judge.asks import Ask, Factor
from qgate.judge.effects import Count
from qgate.judge.experiments import count
from qgate.judge.recognise import Recogniser
from qgate.judge.request_body import as_request
from qgate.ports import Engine, ServeJob, Session, Task, Tool, Watcher
from qgate.schemas.answers import Answer, EngineFacts, GenerateRequest
from qgate.schemas.base import content_key
from qgate.schemas.repro import Arm, Try

WAITING = "another run is asking the same; waiting for it to end"
REQUEST_TIMEOUT_S, STALL_TIMEOUT_S = 600.0, 300.0


@dataclass(frozen=True)
class Setup:
    """One way to serve one checkpoint."""

    arm: Arm
    engine: Engine
    tool: Tool
    device: str
    options: BaseModel
    dtype: str
    folder: Path
    """The checkpoint; for a server that runs already, any folder."""
    digest: str
    """Of the checkpoint's bytes; for a server that runs already, its address."""
    workers: str
    """Hash of the engine's worker scripts."""
    max_model_len: int | None = None

    @property
    def key(self) -> str:
        """Content key: what decides the answers beside the request."""
        return content_key(
            {
                "format": 1,
                "checkpoint": self.digest,
                "engine": [self.engine.name, self.tool.identity, self.workers, self.device, self.dtype],
                "options": self.options.model_dump(mode="json"),
                "max_model_len": self.max_model_len,
            }
        )


class Replayer:
    """Asks. Use as a context: leaving it ends what was started."""

    def __init__(self, objects: Path, folder: Path, watcher: Watcher, concurrency: int) -> None:
        """`objects`: of the store; `folder`: for logs and scratch; `concurrency`: the most that is ever in flight."""
        self.watcher = watcher
        self._objects, self._folder, self._concurrency = objects, folder, concurrency
        self._log_stack, self._session_stack = ExitStack(), ExitStack()
        self._log: TryLog | None = None
        self._session: Session | None = None
        self._setup: Setup | None = None
        self._starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server, if one is up."""
        self._end_session()
        self._log_stack.close()
        self._log = self._setup = None
        self._starts = 0

    def answers(self, setup: Setup, ask: Ask, num: int, task: Task | None = None) -> list[Answer]:
        """The first `num` answers (rounded up to a whole load), from the store or the engine. Raises EngineError."""
        log = self._log_of(setup)
        chunks = -(-num // ask.in_flight)
        found: list[Answer] = []
        for chunk in range(chunks):
            ids = [f"{ask.key[:24]}/{number}" for number in range(chunk * ask.in_flight, (chunk + 1) * ask.in_flight)]
            if any(each not in log.answers for each in ids):
                self._ask(setup, ask, ids, log)
            found += [log.answers[each] for each in ids]
            if task is not None:
                task.advance(len(ids))
        return found

    def facts(self, setup: Setup) -> EngineFacts | None:
        """What served it, once it was asked."""
        return self._log_of(setup).facts()

    def _log_of(self, setup: Setup) -> TryLog:
        if self._log is None or self._setup is None or self._setup.key != setup.key:
            self.close()
            log = TryLog(self._objects / "tries" / setup.key, lambda: self.watcher.note(f"{setup.arm}: {WAITING}"))
            self._log = self._log_stack.enter_context(log)
            self._setup = setup
        return self._log

    def _ask(self, setup: Setup, ask: Ask, ids: Sequence[str], log: TryLog) -> None:
        """Once more, on a fresh engine, if it dies or hangs."""
        try:
            self._ask_once(setup, ask, ids, log)
        except (DiedError, HungError) as error:
            if self._starts > 1:
                raise
            self.watcher.note(f"{setup.arm}: {error.message.splitlines()[0]}; starting it once more")
            self._end_session()
            self._ask_once(setup, ask, ids, log)

    def _ask_once(self, setup: Setup, ask: Ask, ids: Sequence[str], log: TryLog) -> None:
        session = self._open(setup, log)
        requests = [_request(ask, each) for each in ids]
        for answer in session.generate(requests):
            log.add(answer)
        if missing := [each for each in ids if each not in log.answers]:
            raise EngineError(f"{len(missing)} of {len(ids)} requests were left unanswered")

    def _open(self, setup: Setup, log: TryLog) -> Session:
        if self._session is None:
            self._starts += 1
            with self.watcher.task(f"{setup.arm}: starting {setup.engine.name}", None):
                self._session = self._session_stack.enter_context(setup.engine.open(self._job(setup)))
            log.save_facts(self._session.facts)
        return self._session

    def _job(self, setup: Setup) -> ServeJob:
        work = self._folder / "work"
        with disk_errors(work):
            work.mkdir(parents=True, exist_ok=True)
            work = Path(tempfile.mkdtemp(prefix=f"{setup.arm}-", dir=work))
        return ServeJob(
            checkpoint=setup.folder,
            name=setup.arm,
            dtype=setup.dtype,
            options=setup.options,
            tool=setup.tool,
            concurrency=self._concurrency,
            request_timeout_s=REQUEST_TIMEOUT_S,
            stall_timeout_s=STALL_TIMEOUT_S,
            repeatable=False,
            max_model_len=setup.max_model_len,
            log=self._folder / "logs" / f"{setup.arm}-{setup.key[:8]}.log",
            work=work,
        )

    def _end_session(self) -> None:
        session, self._session = self._session, None
        self._session_stack.close()
        if session is not None and self._log is not None:
            self._log.save_facts(session.facts)


def _request(ask: Ask, request_id: str) -> GenerateRequest:
    number = int(request_id.rsplit("/", 1)[1])
    return as_request(request_id, ask.body_of(secrets.token_hex(16)), ask.seed(number), logprobs=ask.logprobs)


def tries(answers: Sequence[Answer], ask: Ask, recogniser: Recogniser) -> list[Try]:
    """Each answer as a try."""
    return [recogniser.judge(answer, ask.body, ask.seed(number)) for number, answer in enumerate(answers)]


def replay(
    replayer: Replayer, setup: Setup, factor: Factor, recogniser: Recogniser, wanted: Callable[[Count], int]
) -> tuple[list[Try], list[Answer]]:
    """Tries in rounds, until `wanted` asks for no more than there are. Raises EngineError."""
    ask = factor.ask
    found: list[Try] = []
    answers: list[Answer] = []
    num = wanted(Count(0, 0))
    while num > len(found):
        whole_loads = -(-num // ask.in_flight) * ask.in_flight
        with replayer.watcher.task(f"{setup.arm}: {factor.change}", whole_loads) as task:
            answers = replayer.answers(setup, ask, num, task)
        found = tries(answers, ask, recogniser)
        counted = count(found)
        num = 0 if counted.tries < len(found) / 2 else wanted(Count(counted.failures, len(found)))
    return found, answers
