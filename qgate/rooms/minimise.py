"""A failing request and a way to try requests → the smallest that still fails, with its picture. The tries touch the world.

Nothing is stored here: who hands in `tries` keeps them by content, so an interrupted run goes the same way again at no
cost, up to where it was.
"""

from __future__ import annotations

from qgate.judge import rate_map
from qgate.judge.shrink import SURE_TRIES, Shrunk, shrink
from qgate.judge.shrink_body import count, read
from qgate.judge.shrink_rate import measured
from qgate.judge.shrink_trials import BudgetSpent, Candidate, Record, Source
from qgate.ports import Task, Watcher
from qgate.schemas.minimised import Body, Minimised, Rate, Trial, Waypoint
from qgate.schemas.repro import Tries

PICTURE_SHARE = 0.25
"""Share of the budget that the outcome's rate and the picture may take."""
RATE_TRIES = 29
"""Tries that the rate of a flaky outcome is taken from: they see a rate of 10 % with a chance of 95 %."""
PICTURE_TRIES = 8
"""Tries that a cell of the picture gets, at temperatures above 0."""


def minimise(body: Body, tries: Tries, *, rate: float, budget: int, watcher: Watcher, at_once: int = 1) -> Minimised:
    """The smallest request found that fails at about `rate`, by at most `budget` model calls, the picture's included.

    `rate` is the failure rate as filed, in (0, 1]; from 0.999 up it is taken as certain, and one try decides. Tries
    are asked for in multiples of `at_once`: as many as are in flight together, where the failure needs a load. Raises
    ValueError for another rate or a body without a prompt; what `tries` raises passes through.
    """
    picture = round(PICTURE_SHARE * budget)
    with watcher.task("minimise", budget) as task:
        source = Source(_told(tries, task), at_once, task.advance)
        found = shrink(body, source, rate=rate, budget=budget - picture)
        found.course.trials.budget, found.course.trials.step = budget, "picture"
        outcome_rate, planned = _rate(found), _plan(found)
    return _minimised(found, outcome_rate, planned)


def _told(tries: Tries, task: Task) -> Tries:
    """The tries, with a word on what is being tried."""

    def told(body: Body, num: int) -> list[bool]:
        draft = read(body)
        task.detail(f"{len({part.turn for part in draft})} turns, {count(draft, 'words')} words")
        return list(tries(body, num))

    return told


def _rate(found: Shrunk) -> Rate:
    """The outcome's failure rate by tries that had no part in choosing it, as many as the budget still allows."""
    course, trials = found.course, found.course.trials
    if trials.test.is_certain:
        record = trials.record(course.current)
        return measured(record.failures, len(record.results))
    try:
        came = trials.ask(course.current, RATE_TRIES)
    except BudgetSpent:
        came = []
    return measured(sum(came), len(came))


def _plan(found: Shrunk) -> list[Candidate]:
    """What fills the picture, tried as far as the budget goes; none where the outcome does not hold."""
    trials = found.course.trials
    planned = rate_map.planned(found.course) if found.verified else []
    for candidate in planned:
        record = trials.record(candidate)
        known = record.fair if record.keeps else record.results
        wanted = SURE_TRIES if candidate.temperature == 0 else PICTURE_TRIES
        try:
            if len(known) < wanted:
                trials.ask(candidate, wanted - len(known))
        except BudgetSpent:
            break
    return planned


def _minimised(found: Shrunk, rate: Rate, planned: list[Candidate]) -> Minimised:
    course, trials = found.course, found.course.trials
    after = course.current.size()
    return Minimised(
        body=course.current.body(course.filed),
        before=course.path[0].size(),
        after=after,
        rate=rate,
        verified=found.verified,
        deterministic=trials.test.is_certain,
        needs="length" if course.needs_length else "content",
        finest=course.finest,
        exhausted=found.exhausted,
        num_calls=trials.num_calls,
        num_candidates=sum(bool(record.results) for record in trials.records.values()),
        budget=trials.budget,
        thresholds=rate_map.thresholds(course),
        trials=tuple(_trial(one, one.candidate in course.path) for one in trials.records.values() if one.results),
        rate_map=rate_map.rate_map(rate_map.telling(course, planned), after.num_characters),
        path=tuple(Waypoint(body=each.body(course.filed), size=each.size()) for each in course.path),
    )


def _trial(record: Record, on_path: bool) -> Trial:
    return Trial(
        step=record.step, size=record.candidate.size(), failures=record.failures, tries=len(record.results),
        accepted=record.keeps, on_path=on_path,
    )  # fmt: skip
