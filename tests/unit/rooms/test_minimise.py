from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from qgate.reports.rate_picture import as_text
from qgate.rooms.minimise import minimise
from qgate.schemas.minimised import Body, Minimised
from tests.unit.judge.planted import TRIGGER, Model, chat, holds, prose, text_of


class Watched:
    """A watcher, and the task that it hands out."""

    def __init__(self) -> None:
        self.done = 0
        self.said: list[str] = []

    @contextmanager
    def task(self, label: str, total: int | None, done: int = 0) -> Iterator[Watched]:
        yield self

    def advance(self, num: int = 1) -> None:
        self.done += num

    def detail(self, text: str) -> None:
        self.said.append(text)

    def note(self, text: str) -> None:
        raise AssertionError(text)


def flaky(body: Body) -> float:
    """The hotter, the oftener; answers of fewer than 20 tokens show nothing."""
    return holds(text_of(body), TRIGGER) * (body["max_tokens"] >= 20) * min(0.6, 0.6 * body["temperature"])


def minimised(model: Model, body: Body, *, rate: float, budget: int) -> Minimised:
    return minimise(body, model, rate=rate, budget=budget, watcher=Watched())


@pytest.fixture(scope="module")
def found() -> Minimised:
    body = chat(prose(random.Random(2), 3000, TRIGGER), temperature=1.0, max_tokens=256)
    return minimised(Model(flaky), body, rate=0.6, budget=1600)


def test_the_outcome_is_told_with_what_it_was_and_what_it_took(found: Minimised) -> None:
    assert holds(text_of(found.body), TRIGGER)
    assert (found.before.num_words, found.after.num_words) == (3000, 12)
    assert (found.before.max_tokens, found.after.max_tokens) == (256, 24)
    assert found.verified
    assert found.finest == "words"
    assert not found.exhausted
    assert found.num_calls <= found.budget
    assert found.num_candidates == len(found.trials) > 20


def test_the_rate_is_taken_from_tries_that_chose_nothing(found: Minimised) -> None:
    true = flaky(found.body)
    assert found.rate.tries == 29
    assert found.rate.low <= true <= found.rate.high


def test_thresholds_lie_where_they_were_planted(found: Minimised) -> None:
    limits = found.thresholds
    assert (limits.longest_clear_words, limits.shortest_failing_words) == (11, 12)
    assert (limits.most_clear_max_tokens, limits.fewest_failing_max_tokens) == (16, 24)
    assert limits.highest_clear_temperature is not None
    assert limits.lowest_failing_temperature is not None
    assert limits.highest_clear_temperature < limits.lowest_failing_temperature


def test_the_picture_rises_with_temperature_and_is_clear_below_the_outcome(found: Minimised) -> None:
    picture = found.rate_map
    assert picture.temperatures[0] == 0.0
    assert 1.0 in picture.temperatures
    cells = {(cell.length, cell.temperature): cell.rate for cell in picture.cells}
    assert all(rate.failures == 0 for (length, _), rate in cells.items() if length == 0)
    assert all(rate.failures == 0 for (_, temperature), rate in cells.items() if temperature == 0)
    hottest = picture.temperatures.index(1.0)
    hot = [rate for (length, temperature), rate in cells.items() if length and temperature == hottest]
    assert len(hot) >= 3
    assert all(rate.low <= 0.6 <= rate.high for rate in hot)
    assert picture.lengths[0][1] < found.after.num_characters == picture.lengths[1][0]
    assert as_text(picture).count("\n") == len(picture.lengths)


def test_every_trial_is_told(found: Minimised) -> None:
    assert sum(trial.tries for trial in found.trials) == found.num_calls
    path = [trial for trial in found.trials if trial.on_path]
    assert min(trial.size.num_words for trial in path) == found.after.num_words
    assert {trial.step for trial in found.trials} >= {"temperature", "words", "max_tokens", "picture"}


def test_a_certain_failure_takes_under_150_calls_with_its_picture() -> None:
    model = Model(lambda body: float(holds(text_of(body), TRIGGER)))
    watched = Watched()
    body = chat(prose(random.Random(2), 3000, TRIGGER))
    found = minimise(body, model, rate=1.0, budget=149, watcher=watched)
    assert found.deterministic
    assert found.after.num_words <= 1.3 * len(TRIGGER)
    assert found.rate.failures == found.rate.tries
    assert watched.done == found.num_calls == model.num_answers <= 149
    assert watched.said[0] == "1 turns, 1500 words"


def test_only_length_is_told() -> None:
    model = Model(lambda body: float(len(text_of(body).split()) > 150))
    found = minimised(model, chat(prose(random.Random(2), 900)), rate=1.0, budget=149)
    assert found.needs == "length"
    assert (found.thresholds.longest_clear_words, found.thresholds.shortest_failing_words) == (150, 151)


def test_a_default_temperature_is_left_unless_a_lower_one_fails() -> None:
    body = chat("Say zenith.")
    del body["temperature"], body["max_tokens"]
    hot = minimised(Model(lambda body: 0.7 * (body.get("temperature", 1) >= 1)), body, rate=0.7, budget=1500)
    assert "temperature" not in hot.body
    assert hot.thresholds.lowest_failing_temperature is None
    cold = minimised(Model(lambda body: 0.7 + 0.3 * (body.get("temperature") == 0)), body, rate=0.7, budget=1500)
    assert cold.body["temperature"] == 0
    assert cold.body["max_tokens"] == 1
