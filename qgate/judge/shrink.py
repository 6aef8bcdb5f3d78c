"""A failing request, and a way to try requests → the smallest request found that keeps the failure at its rate.

Pure but for the tries it is given: no clock, no chance, so the same answers lead the same way, and a run that was
interrupted goes on from its stored tries. Cuts turns, the prompt's ends, then paragraphs, sentences and words, then
lowers temperature and max_tokens, and cuts characters where the budget covers it. The outcome is tried afresh; where it
does not hold, the path is walked back to what does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qgate.judge.shrink_body import read
from qgate.judge.shrink_course import Course
from qgate.judge.shrink_rate import RateTest
from qgate.judge.shrink_trials import BudgetSpent, Candidate, Source, Trials, limit_name
from qgate.schemas.minimised import Body

SURE_TRIES = 3
"""Fresh tries of an outcome that was decided by single tries."""
STRICT = 0.001
"""Errors allowed when the outcome of a flaky failure is tried afresh."""
ROUNDS = 3
"""Times that a path is walked back and cut again at most."""
RESERVE = 0.1
"""Share of the budget kept for trying the outcome."""


@dataclass(frozen=True)
class Shrunk:
    """How far the cutting came."""

    course: Course
    verified: bool
    exhausted: bool


def shrink(body: Body, source: Source, *, rate: float, budget: int) -> Shrunk:
    """Cut `body` down. `rate`: failures per try as filed, in (0, 1]; from 0.999 up one try decides. `budget`: most calls.

    Raises ValueError for a rate outside (0, 1] and for a body without a prompt; what the tries raise passes through.
    """
    if not 0 < rate <= 1:
        raise ValueError(f"a failure rate of {rate} cannot be kept: it must be in (0, 1]")
    test = RateTest(rate)
    reserve = min(max(SURE_TRIES, round(RESERVE * budget)), budget) if budget > SURE_TRIES else 0
    trials = Trials(body, source, test, budget - reserve)
    start = Candidate(read(body), body.get("temperature"), body.get(limit_name(body)))
    course = Course(body, start, trials)
    exhausted = not _cut(course)
    trials.budget = budget
    for _ in range(ROUNDS):
        try:
            if _verify(course):
                return Shrunk(course, verified=True, exhausted=exhausted)
        except BudgetSpent:
            return Shrunk(course, verified=False, exhausted=True)
        exhausted = not _cut(course)
    return Shrunk(course, verified=False, exhausted=exhausted)


def _cut(course: Course) -> bool:
    """All cuts in their order; False where the budget ended first."""
    try:
        if len(course.path) == 1:
            course.cool()
            _settle(course)
        course.cut_turns()
        course.cut_ends()
        if not course.needs_length:
            for level in ("paragraphs", "sentences", "words"):
                course.cut_inside(level)
        course.lower_temperature()
        course.lower_max_tokens()
        if not course.needs_length and course.affords_characters():
            course.cut_inside("characters")
    except BudgetSpent:
        return False
    return True


def _settle(course: Course) -> None:
    """Whether a failure that was flaky as filed is certain at temperature 0: then one try decides from here on."""
    trials = course.trials
    if trials.test.is_certain or course.current.temperature != 0:
        return
    record = trials.record(course.current)
    missing = SURE_TRIES - len(record.results)
    if missing > 0:
        trials.ask(course.current, missing)
    if all(record.results):
        trials.begin_again(RateTest(1.0))


def _verify(course: Course) -> bool:
    """Whether fresh tries of the outcome fail as they should; if not, go back on the path to what does."""
    trials = course.trials
    if not trials.test.is_certain:
        return _holds(trials, course.current) or _back(course)
    fresh = trials.ask(course.current, SURE_TRIES)
    if fresh and all(fresh):
        return True
    if any(fresh):
        record = trials.record(course.current)
        trials.begin_again(RateTest(record.failures / len(record.results)))
        return False
    return _back(course)


def _back(course: Course) -> bool:
    """Always False: the outcome did not hold. From where the path holds, candidates are kept on stricter terms."""
    trials = course.trials
    course.go_back(lambda candidate: _holds(trials, candidate))
    if not trials.test.is_certain:
        trials.begin_again(replace(trials.test, false_keep=STRICT))
    return False


def _holds(trials: Trials, candidate: Candidate) -> bool:
    """A strict test by fresh tries only. Raises BudgetSpent."""
    test = RateTest(min(trials.test.rate, 0.9), false_keep=STRICT, false_drop=STRICT)
    failures = num = 0
    while (keeps := test.keeps(failures, num)) is None:
        came = trials.ask(candidate, test.more(failures, num))
        if not came:
            return False
        failures, num = failures + sum(came), num + len(came)
    return keeps
