"""Answers and a session in, stored token scores out. Goes on where a run stopped; touches disk and engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from qgate.errors import EngineError
from qgate.io.files import write_text
from qgate.io.score_log import ScoreLog
from qgate.plan import ScoreStep, first_items
from qgate.ports import Session, Task
from qgate.schemas.answers import Answer, GenerateRequest, ScoreRequest

EMPTY = "nothing-to-score"


def score_requests(
    step: ScoreStep, answers: Sequence[Answer], asked: Mapping[str, GenerateRequest]
) -> list[ScoreRequest]:
    """One request per answer that has token ids. `asked` maps a request's id to it."""
    scorable = {answer.id: answer for answer in answers if answer.token_ids}
    chosen = first_items(scorable, step.max_items)
    return [
        ScoreRequest(
            id=key,
            messages=asked[key].messages,
            completion_ids=answer.token_ids or (),
            top_k=step.top_k,
            prompt=_raw(asked[key]),
        )
        for key, answer in scorable.items()
        if key in chosen
    ]


def _raw(request: GenerateRequest) -> tuple[int, ...] | None:
    return request.prompt if isinstance(request.prompt, tuple) else None


def score(session: Session, requests: Sequence[ScoreRequest], folder: Path, task: Task) -> None:
    """Score every answer that `folder` does not hold yet, part by part.

    Raises EngineError when the engine dies, hangs, or leaves an answer unscored; what came before is kept.
    """
    if not requests:
        write_text(folder / EMPTY, "no answer came with token ids\n")
        return
    log = ScoreLog(folder)
    wanted = [request for request in requests if request.id not in log.done]
    try:
        for scores in session.score(wanted) if wanted else ():
            log.append(scores)
            task.advance()
    finally:
        log.flush()
    missing = [request.id for request in requests if request.id not in log.done]
    if missing:
        raise EngineError(f"{len(missing)} of {len(requests)} answers were left unscored, the first is {missing[0]}")
