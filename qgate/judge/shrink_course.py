"""A failing candidate, and trials → smaller candidates that still fail, one kind of cut at a time. Pure but for the tries.

The course remembers the path: every candidate that was gone on with, from the filed one to the current.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from qgate.judge.shrink_body import Piece, joined, pieces
from qgate.judge.shrink_rate import TIGHT, RateTest
from qgate.judge.shrink_search import Fails, Search, boundary
from qgate.judge.shrink_trials import Candidate, Trials
from qgate.schemas.minimised import Body, Level

FEWEST_FOR_LENGTH = 24
"""Words that a prompt is left with at least, before it is asked whether only their number matters."""
MOST_LENGTH_TESTS = 6
DEFAULT_TEMPERATURE = 1.0
"""Of the OpenAI API, where a request names none."""
TOKENS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192)
"""Limits that are tried, in tokens."""


class Course:
    """The candidate that is being cut down."""

    def __init__(self, filed: Body, candidate: Candidate, trials: Trials) -> None:
        self.trials = trials
        self.path = [candidate]
        self.needs_length = False
        self.filed = filed
        self._finished: list[Level] = []

    @property
    def current(self) -> Candidate:
        """The smallest so far."""
        return self.path[-1]

    @property
    def finest(self) -> Level | None:
        """The finest level that was gone through and at which the current prompt has no piece that was not seen to be
        needed: a cut at another level can make one spare that was needed before."""
        return next((level for level in reversed(self._finished) if self._is_minimal(level)), None)

    def _is_minimal(self, level: Level) -> bool:
        draft = self.current.draft
        whole = pieces(draft, level)
        fewer = [joined(whole[:index] + whole[index + 1 :], self.filed) for index in range(len(whole))]
        tried = [candidate for candidate in self.path if candidate.draft == draft]
        return all(
            cut is None or cut == draft or any(self.trials.is_clear(replace(base, draft=cut)) for base in tried)
            for cut in fewer
        )

    def takes(self, candidate: Candidate, test: RateTest | None = None) -> bool:
        """Go on with `candidate` if it keeps the failure, by the usual test or another."""
        keeps = self.trials.keeps(candidate, test)
        if keeps and candidate != self.current:
            self.path.append(candidate)
        return keeps

    def cool(self) -> None:
        """Try it greedily: what fails at temperature 0 needs fewer tries from there on."""
        self.trials.step = "temperature"
        if self.current.temperature != 0:
            self.takes(replace(self.current, temperature=0.0))

    def cut_turns(self) -> None:
        """Cut whole turns."""
        self._cut("turns", _cut_both_ends)

    def cut_ends(self) -> None:
        """Cut the prompt's end and start, to the word, wherever they lie."""
        self.trials.step = "words"
        whole, base = pieces(self.current.draft, "words"), self.current
        search = Search(len(whole), self._fails(base, whole))
        _cut_both_ends(search)
        self.needs_length = self._is_length(base, whole, search.kept)

    def cut_inside(self, level: Level) -> None:
        """Cut what is not needed at `level`, until every piece was seen to be."""
        self._cut(level, Search.cut_chunks)

    def _cut(self, level: Level, first: Callable[[Search], None]) -> None:
        self.trials.step = level
        whole = pieces(self.current.draft, level)
        if len(whole) > 1:
            search = Search(len(whole), self._fails(self.current, whole))
            first(search)
            search.cut_singles()
        self._finished.append(level)

    def _fails(self, base: Candidate, whole: Sequence[Piece]) -> Fails:
        def fails(kept: tuple[int, ...]) -> bool:
            draft = joined((whole[index] for index in kept), self.filed)
            return draft is not None and self.takes(replace(base, draft=draft))

        return fails

    def _is_length(self, base: Candidate, whole: Sequence[Piece], kept: tuple[int, ...]) -> bool:
        """Whether other text of this length fails too: every stretch of what is kept can be missed, if as much is there.

        Asked only where no cut at the start succeeded, as it would if a trigger were what is needed.
        """
        num, spare = len(kept), len(whole) - len(kept)
        size = min(num, spare)
        if num < FEWEST_FOR_LENGTH or kept[0] != 0 or num > size * MOST_LENGTH_TESTS:
            return False
        for start in range(0, num, size):
            draft = joined((*whole[:start], *whole[start + size :]), self.filed)
            if draft is None or not self.trials.keeps(replace(base, draft=draft)):
                return False
        return True

    def lower_temperature(self) -> None:
        """The lowest tenth that still fails at nearly the same rate, if failing goes on upwards from there."""
        self.trials.step = "temperature"
        top = DEFAULT_TEMPERATURE if self.current.temperature is None else self.current.temperature
        ladder = [tenth / 10 for tenth in range(20) if tenth / 10 < top]
        tight = replace(self.trials.test, floor_share=TIGHT)
        self._lowest([replace(self.current, temperature=step) for step in ladder], tight)

    def lower_max_tokens(self) -> None:
        """The lowest limit of the ladder that still fails, likewise."""
        self.trials.step = "max_tokens"
        top = self.current.max_tokens or TOKENS[-1]
        self._lowest([replace(self.current, max_tokens=step) for step in TOKENS if step < top])

    def _lowest(self, rising: Sequence[Candidate], test: RateTest | None = None) -> None:
        boundary(-1, len(rising), lambda index: self.takes(rising[index], test))

    def affords_characters(self) -> bool:
        """Whether characters are finer than words, and the budget allows to try each of them, of a flaky failure twice."""
        test, num = self.trials.test, len(pieces(self.current.draft, "characters"))
        calls = num if test.is_certain else 2 * num * test.fewest_to_drop
        return len(pieces(self.current.draft, "words")) < num and calls <= self.trials.num_left

    def go_back(self, holds: Callable[[Candidate], bool]) -> None:
        """Back to the last candidate of the path that `holds`, if holding ends once it ends; the first is taken to."""
        end = boundary(len(self.path) - 1, 0, lambda index: holds(self.path[index])) + 1
        for candidate in self.path[end:]:
            self.trials.overrule(candidate)
        del self.path[end:]
        self._finished.clear()


def _cut_both_ends(search: Search) -> None:
    search.cut_end()
    search.cut_start()
