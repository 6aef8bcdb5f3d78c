"""Requests and a session in, stored answers out. Goes on where an interrupted run stopped; touches disk and engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qgate.errors import EngineError
from qgate.io.answer_log import AnswerLog
from qgate.ports import Session, Task
from qgate.schemas.answers import GenerateRequest


def generate(session: Session, requests: Sequence[GenerateRequest], folder: Path, task: Task) -> None:
    """Ask for every answer that `folder` does not hold yet and store each as it comes.

    Raises EngineError when the engine dies, hangs, or leaves a request unanswered; what came before is kept.
    """
    log = AnswerLog(folder)
    wanted = [request for request in requests if request.id not in log.done]
    with log:
        for answer in session.generate(wanted) if wanted else ():
            log.append(answer)
            task.advance()
    missing = [request.id for request in requests if request.id not in log.done]
    if missing:
        raise EngineError(f"{len(missing)} of {len(requests)} requests were left unanswered, the first is {missing[0]}")
