"""A minimised request, and both models to try → the smallest on its path whose failure the unquantized model does not
share. The tries touch the world.

A request can be cut until every model fails on it: one token of an answer always ends by its length, a torn word is
answered by a loop. Such a request shows nothing of the candidate. So the unquantized model is asked the final request,
and where it fails as well, the path to it is walked back by bisection to where it does not.
"""

from __future__ import annotations

from qgate.judge.shrink import SURE_TRIES
from qgate.judge.shrink_rate import RateTest, measured
from qgate.judge.shrink_search import boundary
from qgate.ports import Watcher
from qgate.rooms.minimise import RATE_TRIES
from qgate.schemas.minimised import Body, Minimised, Waypoint
from qgate.schemas.repro import Tries

MOST_TRIES = 64
"""Tries of one request after which a model that fails now and then is taken to share the failure."""


def tell_apart(found: Minimised, candidate: Tries, unquantized: Tries, watcher: Watcher) -> Minimised:
    """`found` with a final request that only the candidate fails on. Where it changes, its rate is tried afresh.

    Where the unquantized model fails on the filed request too, nothing can be told apart, and that is said. What the tries
    raise passes through.
    """
    test = RateTest(1.0 if found.deterministic else found.rate.value or 1.0)
    if not _shares(found.body, unquantized, test):
        return found.model_copy(update={"apart": True})
    watcher.note("the unquantized model fails on the minimal request too: going back to where it does not")
    path = found.path
    alone = boundary(len(path) - 1, 0, lambda index: not _shares(path[index].body, unquantized, test))
    is_apart = alone > 0 or not _shares(path[0].body, unquantized, test)
    return _ending_at(found, path[alone], candidate).model_copy(update={"apart": is_apart})


def _shares(body: Body, tries: Tries, test: RateTest) -> bool:
    """Whether the model fails on it at about the candidate's rate. No answer is no failure."""
    num = 0
    while True:
        num += test.more(0, 0)
        results = list(tries(body, num))
        keeps = test.keeps(sum(results), len(results))
        if keeps is not None or num >= MOST_TRIES:
            return keeps is not False and bool(results)


def _ending_at(found: Minimised, point: Waypoint, candidate: Tries) -> Minimised:
    """The same with this request as the final one."""
    results = list(candidate(point.body, SURE_TRIES if found.deterministic else RATE_TRIES))
    limits = found.thresholds.model_copy(
        update={
            "shortest_failing_words": point.size.num_words,
            "lowest_failing_temperature": point.size.temperature,
            "fewest_failing_max_tokens": point.size.max_tokens,
        }
    )
    return found.model_copy(
        update={
            "body": point.body,
            "after": point.size,
            "rate": measured(sum(results), len(results)),
            "verified": any(results),
            "finest": None,
            "thresholds": limits,
            "num_calls": found.num_calls + len(results),
            "path": found.path[: found.path.index(point) + 1],
        }
    )
