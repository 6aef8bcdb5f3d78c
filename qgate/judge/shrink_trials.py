"""Candidates → whether each keeps the failure, within a budget of model calls, every try kept. Pure but for the tries.

Counts what was asked and never asks twice: the tries of a candidate add up, a decision stands until it is overruled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from qgate.judge.request_body import LIMITS
from qgate.judge.shrink_body import Draft, count, write
from qgate.judge.shrink_rate import RateTest
from qgate.schemas.base import content_key
from qgate.schemas.minimised import Body, Size, Step
from qgate.schemas.repro import Tries


class BudgetSpent(Exception):
    """No model call is left."""


@dataclass(frozen=True)
class Candidate:
    """A request that may be tried: its prompt and the two fields that are lowered. None: the body names no such field."""

    draft: Draft
    temperature: float | None
    max_tokens: int | None

    def body(self, filed: Body) -> Body:
        """The request body, all else as filed."""
        body = write(self.draft, filed)
        if self.temperature is not None:
            body = body | {"temperature": self.temperature}
        if self.max_tokens is not None:
            body = body | {limit_name(filed): self.max_tokens}
        return body

    def size(self) -> Size:
        """How large it is."""
        return Size(
            num_turns=len({part.turn for part in self.draft}),
            num_words=count(self.draft, "words"),
            num_characters=count(self.draft, "characters"),
            max_tokens=self.max_tokens,
            temperature=self.temperature,
        )


def limit_name(body: Body) -> str:
    """The field that limits the answer's tokens."""
    return next((name for name in LIMITS if body.get(name) is not None), LIMITS[-1])


@dataclass
class Record:
    """What is known of one candidate."""

    candidate: Candidate
    step: Step
    results: list[bool] = field(default_factory=list)
    keeps: bool | None = None
    overruled: bool = False
    num_deciding: int = 0
    """Tries that decided it. Where they were more than one they lean towards the decision, and tell no rate."""

    @property
    def failures(self) -> int:
        """Tries that failed."""
        return sum(self.results)

    @property
    def fair(self) -> list[bool]:
        """Tries that a rate may be taken from."""
        return self.results if self.num_deciding <= 1 else self.results[self.num_deciding :]


@dataclass(frozen=True)
class Source:
    """Where tries come from."""

    tries: Tries
    at_once: int = 1
    """Tries are asked for in multiples of this: as many as must be in flight together."""
    on_calls: Callable[[int], None] = lambda num: None
    """Told of every number of calls made."""


class Trials:
    """All candidates tried so far."""

    def __init__(self, filed: Body, source: Source, test: RateTest, budget: int) -> None:
        self.test = test
        self.budget = budget
        self.num_calls = 0
        self.step: Step = "filed"
        self.records: dict[str, Record] = {}
        self._filed = filed
        self._source = source

    def record(self, candidate: Candidate) -> Record:
        """What is known of a candidate."""
        return self.records.setdefault(self._key(candidate), Record(candidate, self.step))

    def _key(self, candidate: Candidate) -> str:
        return content_key(candidate.body(self._filed))

    def keeps(self, candidate: Candidate, test: RateTest | None = None) -> bool:
        """Whether it fails at about the known rate, by the usual test or another. Raises BudgetSpent."""
        test = test or self.test
        record = self.record(candidate)
        while record.keeps is None:
            record.keeps = test.keeps(record.failures, len(record.results))
            if record.keeps is None and not self.ask(candidate, test.more(record.failures, len(record.results))):
                record.keeps = False
            if record.keeps is not None:
                record.num_deciding = len(record.results)
        return record.keeps

    def is_clear(self, candidate: Candidate) -> bool:
        """Whether it was tried and did not keep the failure."""
        record = self.records.get(self._key(candidate))
        return record is not None and record.keeps is False

    def ask(self, candidate: Candidate, num: int) -> list[bool]:
        """`num` more tries of it, rounded up to what is asked at once, or as many as the budget allows; none where no
        answer came. Raises BudgetSpent."""
        record, at_once = self.record(candidate), self._source.at_once
        num = min(-(-num // at_once), self.num_left // at_once) * at_once
        known = len(record.results)
        if num <= 0:
            raise BudgetSpent
        came = list(self._source.tries(candidate.body(self._filed), known + num))[known:]
        self.num_calls += num
        self._source.on_calls(num)
        record.results += came
        return came

    def overrule(self, candidate: Candidate) -> None:
        """It was found to be clear after all."""
        record = self.record(candidate)
        record.keeps, record.overruled = False, True

    def begin_again(self, test: RateTest) -> None:
        """Decide anew, by another test; the tries stay, and so does what was overruled."""
        self.test = test
        for record in self.records.values():
            record.keeps = False if record.overruled else None

    @property
    def num_left(self) -> int:
        """Calls that the budget still allows."""
        return self.budget - self.num_calls
