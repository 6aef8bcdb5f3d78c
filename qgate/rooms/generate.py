"""Requests and a session in, stored answers out. Goes on where an interrupted run stopped; touches disk and engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qgate.errors import EngineError
from qgate.io.answer_log import AnswerLog, whole_answers
from qgate.ports import Session, Task
from qgate.schemas.answers import GenerateRequest


def generate(session: Session, requests: Sequence[GenerateRequest], folder: Path, task: Task) -> None:
    """Ask for every answer that `folder` does not hold yet and store each as it comes.

    Raises EngineError when the engine dies, hangs, or leaves a request unanswered; what came before is kept.
    """
    done = {answer.id for answer in whole_answers(folder)}
    wanted = [request for request in requests if request.id not in done]
    with AnswerLog(folder) as log:
        for answer in session.generate(wanted) if wanted else ():
            log.append(answer)
            done.add(answer.id)
            task.advance()
    missing = [request.id for request in requests if request.id not in done]
    if missing:
        raise EngineError(f"{len(missing)} of {len(requests)} requests were left unanswered, the first is {missing[0]}")
