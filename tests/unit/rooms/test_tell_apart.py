from __future__ import annotations

import random

import pytest

from qgate.rooms.minimise import minimise
from qgate.rooms.tell_apart import tell_apart
from qgate.schemas.minimised import Body, Minimised
from tests.unit.judge.planted import Model, chat, prose, text_of
from tests.unit.rooms.test_minimise import Watched


class Noting(Watched):
    def note(self, text: str) -> None:
        self.said.append(text)


def never_stops(body: Body) -> float:
    """The candidate: every answer runs to its limit."""
    return 1.0


def stops(body: Body) -> float:
    """The unquantized model: answers are 20 tokens long, so a lower limit cuts them too."""
    return float(body["max_tokens"] <= 20)


def minimised(rate: float = 1.0) -> tuple[Minimised, Model]:
    model = Model(lambda body: rate * never_stops(body))
    body = chat(prose(random.Random(1), 60), max_tokens=64, temperature=0.0 if rate == 1 else 0.9)
    return minimise(body, model, rate=rate, budget=400, watcher=Noting()), model


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_what_every_model_fails_on_is_walked_back_to_what_only_this_one_does(rate: float) -> None:
    cut, model = minimised(rate)
    assert cut.body["max_tokens"] == 1
    watched = Noting()
    found = tell_apart(cut, model, Model(lambda body: rate * stops(body), seed=1), watched)
    assert found.apart
    assert found.verified
    assert found.body["max_tokens"] > 20
    assert found.after.max_tokens == found.body["max_tokens"]
    assert found.after.num_words <= 3
    assert found.path[-1].body == found.body
    assert len(watched.said) == 1
    assert found.rate.tries == (3 if rate == 1 else 29)


def test_what_only_the_candidate_fails_on_stays() -> None:
    cut, model = minimised()
    found = tell_apart(cut, model, Model(lambda body: 0.0), Noting())
    assert found == cut.model_copy(update={"apart": True})


def test_where_all_is_shared_the_filed_request_is_left_and_told() -> None:
    cut, model = minimised()
    found = tell_apart(cut, model, Model(lambda body: 1.0), Noting())
    assert found.apart is False
    assert text_of(found.body) == text_of(cut.path[0].body)


def test_where_only_the_filed_request_tells_them_apart_it_stays_and_counts_as_apart() -> None:
    cut, model = minimised()
    whole = text_of(cut.path[0].body)
    found = tell_apart(cut, model, Model(lambda body: float(text_of(body) != whole)), Noting())
    assert found.apart
    assert text_of(found.body) == whole


def test_a_model_that_does_not_answer_shares_nothing() -> None:
    cut, model = minimised()
    assert tell_apart(cut, model, lambda body, num: [], Noting()).apart


def test_the_path_is_not_stored() -> None:
    cut, _ = minimised()
    assert len(cut.path) > 1
    assert Minimised.model_validate_json(cut.model_dump_json()).path == ()
