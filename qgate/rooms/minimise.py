"""A failing request and a way to try requests → the smallest that still fails, with its picture. The tries touch the world.

Nothing is stored here: who hands in `tries` keeps them by content, so an interrupted run goes the same way again at no
cost, up to where it was.
"""

from __future__ import annotations

from qgate.judge import rate_map
from qgate.judge.shrink import SURE_TRIES, Shrunk, shrink
from qgate.judge.shrink_rate import measured
from qgate.judge.shrink_trials import BudgetSpent, Record
from qgate.ports import Task, Watcher
from qgate.schemas.minimised import Body, Minimised, Rate, Size, Trial
from qgate.schemas.repro import Tries

PICTURE_SHARE = 0.25
"""Share of the budget that the outcome's rate and the picture may take."""
RATE_TRIES = 29
"""Tries that the rate of a flaky outcome is taken from: they see a rate of 10 % with a chance of 95 %."""
PICTURE_TRIES = 8
"""Tries that a cell of the picture gets, at temperatures above 0."""


def minimise(body: Body, tries: Tries, *, rate: float, budget: int, watcher: Watcher) -> Minimised:
    """The smallest request found that fails at about `rate`, by at most `budget` model calls, the picture's included.

    `rate` is the failure rate as filed, in (0, 1]; from 0.999 up it is taken as certain, and one try decides. Raises
    ValueError for another rate or a body without a prompt; what `tries` raises passes through.
    """
    picture = round(PICTURE_SHARE * budget)
    with watcher.task("minimise", budget) as task:
        found = shrink(body, _told(tries, task), rate=rate, budget=budget - picture, on_calls=task.advance)
        measured_rate = _rate(found, budget)
        planned = _planned(found)
    return _minimised(found, measured_rate, planned, budget)


def _told(tries: Tries, task: Task) -> Tries:
    """The tries, with a word on what is being tried."""

    def told(body: Body, num: int) -> list[bool]:
        text = body["messages"][-1].get("content") if body.get("messages") else body.get("prompt")
        task.detail(f"{len(text or '')} characters" if isinstance(text, str) else "")
        return list(tries(body, num))

    return told


def _rate(found: Shrunk, budget: int) -> Rate:
    """The outcome's failure rate by tries that had no part in choosing it, as many as the budget still allows."""
    course, trials = found.course, found.course.trials
    trials.budget = budget
    if trials.test.is_certain:
        record = trials.record(course.current)
        return measured(record.failures, len(record.results))
    try:
        came = trials.ask(course.current, RATE_TRIES)
    except BudgetSpent:
        came = []
    return measured(sum(came), len(came))


def _planned(found: Shrunk) -> list[Record]:
    """Tries that fill the picture, as far as the budget goes; on requests on the path to an outcome that holds only."""
    trials, records = found.course.trials, []
    trials.step = "picture"
    for candidate in rate_map.planned(found.course) if found.verified else ():
        record = trials.record(candidate)
        wanted = SURE_TRIES if candidate.temperature == 0 else PICTURE_TRIES
        try:
            if len(record.results) < wanted:
                trials.ask(candidate, wanted - len(record.results))
        except BudgetSpent:
            break
        records.append(record)
    return records


def _minimised(found: Shrunk, rate: Rate, planned: list[Record], budget: int) -> Minimised:
    course, trials = found.course, found.course.trials
    seen, shortest = rate_map.telling(course), course.current.size().num_characters
    seen += [record for record in planned if all(record is not one for one in seen)]
    return Minimised(
        body=course.current.body(course.filed),
        before=course.path[0].size(),
        after=course.current.size(),
        rate=rate,
        verified=found.verified,
        deterministic=trials.test.is_certain,
        needs="length" if course.needs_length else "content",
        finest=course.finest,
        exhausted=found.exhausted,
        num_calls=trials.num_calls,
        num_candidates=len(trials.records),
        budget=budget,
        thresholds=rate_map.thresholds(course),
        trials=tuple(_trial(one, one.candidate in course.path) for one in trials.records.values() if one.results),
        rate_map=rate_map.rate_map([(_size(one), one.failures, len(one.results)) for one in seen], shortest),
    )


def _size(record: Record) -> Size:
    return record.candidate.size()


def _trial(record: Record, on_path: bool) -> Trial:
    return Trial(
        step=record.step, size=_size(record), failures=record.failures, tries=len(record.results),
        accepted=record.keeps, on_path=on_path,
    )  # fmt: skip
