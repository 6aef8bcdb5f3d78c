from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qgate.judge.shrink import Shrunk
from qgate.judge.shrink import shrink as shrink_from
from qgate.judge.shrink_body import count, joined, pieces
from qgate.judge.shrink_trials import Source
from qgate.schemas.minimised import Body
from qgate.schemas.repro import Tries
from tests.unit.judge.planted import TRIGGER, Model, bare, chat, holds, prose, text_of

NEAR = 1.3 * len(TRIGGER)


def shrink(body: Body, tries: Tries, *, rate: float, budget: int, at_once: int = 1) -> Shrunk:
    return shrink_from(body, Source(tries, at_once), rate=rate, budget=budget)


def outcome(found: Shrunk) -> Body:
    return found.course.current.body(found.course.filed)


def num_words(found: Shrunk) -> int:
    return count(found.course.current.draft, "words")


@pytest.mark.parametrize("seed", range(20))
def test_a_certain_trigger_in_3000_words_is_found_in_under_150_calls(seed: int) -> None:
    model = Model(lambda body: float(holds(text_of(body), TRIGGER)))
    body = chat(prose(random.Random(seed), 3000, TRIGGER))
    found = shrink(body, model, rate=1.0, budget=149)
    assert holds(text_of(outcome(found)), TRIGGER)
    assert num_words(found) <= NEAR
    assert model.num_answers == found.course.trials.num_calls < 150
    assert found.verified


def test_a_trigger_that_fails_three_times_in_ten_is_found_in_nine_of_ten_runs() -> None:
    right, calls = 0, []
    for seed in range(100):
        model = Model(lambda body: 0.3 * holds(text_of(body), TRIGGER), seed)
        body = chat(prose(random.Random(seed), 3000, TRIGGER), temperature=0.8)
        found = shrink(body, model, rate=0.3, budget=1800)
        right += found.verified and holds(text_of(outcome(found)), TRIGGER) and num_words(found) <= NEAR
        calls.append(model.num_answers)
    assert right >= 95, f"{right} of 100"
    assert sorted(calls)[50] < 700


def test_a_model_that_also_fails_by_itself_now_and_then_does_not_mislead_it() -> None:
    right = 0
    for seed in range(30):
        model = Model(lambda body: 0.3 if holds(text_of(body), TRIGGER) else 0.01, seed)
        found = shrink(
            chat(prose(random.Random(seed), 800, TRIGGER), temperature=0.8), model, rate=0.3, budget=1800
        )  # fmt: skip
        right += found.verified and holds(text_of(outcome(found)), TRIGGER) and num_words(found) <= NEAR
    assert right >= 27, f"{right} of 30"


@pytest.mark.parametrize("seed", range(5))
def test_a_trigger_in_two_places_is_found(seed: int) -> None:
    rng, halves = random.Random(seed), (TRIGGER[:6], TRIGGER[6:])
    model = Model(lambda body: float(holds(text_of(body), *halves)))
    found = shrink(
        chat(f"{prose(rng, 1500, halves[0])} {prose(rng, 1500, halves[1])}"), model, rate=1.0, budget=149
    )  # fmt: skip
    assert holds(text_of(outcome(found)), *halves)
    assert num_words(found) <= NEAR


def test_turns_that_are_not_needed_go_and_the_chat_stays_one() -> None:
    rng = random.Random(1)
    body = chat(*(prose(rng, 60, TRIGGER if turn == 2 else ()) for turn in range(7)))
    body["messages"].insert(0, {"role": "system", "content": prose(rng, 100)})
    found = shrink(body, Model(lambda body: float(holds(text_of(body), TRIGGER))), rate=1.0, budget=149)
    assert [message["role"] for message in outcome(found)["messages"]] == ["user"]
    assert num_words(found) <= NEAR


def test_a_part_in_the_system_prompt_stays_there() -> None:
    rng = random.Random(1)
    body = chat(prose(rng, 300, TRIGGER[:4]))
    body["messages"].insert(0, {"role": "system", "content": prose(rng, 300, TRIGGER[4:])})
    model = Model(lambda body: float(holds(text_of(body), TRIGGER[:4], TRIGGER[4:])))
    left = outcome(shrink(body, model, rate=1.0, budget=149))["messages"]
    assert [(message["role"], bare(message["content"]).split()) for message in left] == [
        ("system", TRIGGER[4:]), ("user", TRIGGER[:4]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("今天天气很好我们去公园散步吧然后回家吃晚饭看电影睡觉" * 20, "机密文件"),
        ("วันนี้อากาศดีมากเราไปเดินเล่น" * 20, "ความลับ"),
    ],
)
def test_scripts_without_spaces_are_cut_to_the_character(text: str, trigger: str) -> None:
    planted = f"{text[:200]}{trigger}{text[200:]}"
    found = shrink(chat(planted), Model(lambda body: float(trigger in text_of(body))), rate=1.0, budget=149)
    assert text_of(outcome(found)) == trigger
    assert found.course.finest == "words"


def test_characters_are_cut_where_words_are_not_the_end() -> None:
    found = shrink(
        chat("please tell me about !!!overflow!!! now"), Model(lambda body: float("flow" in text_of(body))),
        rate=1.0, budget=149,
    )  # fmt: skip
    assert text_of(outcome(found)) == "flow"
    assert found.course.finest == "characters"


def test_only_the_length_matters_is_told_and_the_prompt_cut_to_it() -> None:
    model = Model(lambda body: float(len(text_of(body).split()) >= 200))
    found = shrink(chat(prose(random.Random(1), 1000)), model, rate=1.0, budget=149)
    assert found.course.needs_length
    assert num_words(found) == 200
    assert model.num_answers < 50


@pytest.mark.parametrize("place", [0, 500, 988])
def test_a_trigger_is_not_taken_for_a_length(place: int) -> None:
    words = [random.Random(1).choice(["so", "it", "is"]) for _ in range(988)]
    words[place:place] = TRIGGER
    model = Model(lambda body: float(holds(text_of(body), TRIGGER)))
    found = shrink(chat(" ".join(words)), model, rate=1.0, budget=149)
    assert not found.course.needs_length
    assert num_words(found) == len(TRIGGER)


def test_a_fault_that_needs_length_and_a_trigger_keeps_both() -> None:
    def rate(body: Body) -> float:
        return float(len(text_of(body).split()) >= 40 and holds(text_of(body), TRIGGER))

    found = shrink(chat(prose(random.Random(1), 1000, TRIGGER)), Model(rate), rate=1.0, budget=300)
    assert rate(outcome(found))
    assert num_words(found) == 40


def test_temperature_and_limit_are_lowered_to_where_it_still_fails() -> None:
    def rate(body: Body) -> float:
        return 0.5 * (body["temperature"] >= 0.6 and body["max_tokens"] >= 40)

    found = shrink(chat("Say it.", temperature=1.2, max_tokens=500), Model(rate), rate=0.5, budget=2000)
    assert outcome(found)["temperature"] in {0.6, 0.7}
    assert outcome(found)["max_tokens"] in {48, 64}


def test_what_fails_greedily_is_certain_from_there_on() -> None:
    body = chat(prose(random.Random(1), 3000, TRIGGER), temperature=0.9)
    model = Model(
        lambda body: (1.0 if body["temperature"] == 0 else 0.3) * holds(text_of(body), TRIGGER)
    )  # fmt: skip
    found = shrink(body, model, rate=0.3, budget=500)
    assert found.course.trials.test.is_certain
    assert outcome(found)["temperature"] == 0
    assert num_words(found) <= NEAR
    assert model.num_answers < 250


def test_certain_that_turns_out_flaky_is_cut_again_as_flaky() -> None:
    noticed = 0
    for seed in range(10):
        model = Model(lambda body: 0.6 * holds(text_of(body), TRIGGER), seed)
        found = shrink(chat(prose(random.Random(seed), 400, TRIGGER)), model, rate=1.0, budget=1500)
        assert holds(text_of(outcome(found)), TRIGGER)
        if not found.course.trials.test.is_certain:
            noticed += 1
            assert found.verified
            assert num_words(found) <= NEAR
    assert noticed >= 5  # three fresh tries all fail with a chance of 0.22


def test_an_outcome_that_does_not_hold_is_walked_back() -> None:
    lies = [True]

    def tries(body: Body, num: int) -> list[bool]:
        fails = holds(text_of(body), TRIGGER)
        if not fails and lies and len(text_of(body).split()) < 100:
            lies.clear()
            return [True] * num
        return [fails] * num if fails or num < 2 else [True] * (num - 3) + [False] * 3

    found = shrink(chat(prose(random.Random(1), 400, TRIGGER)), tries, rate=1.0, budget=400)
    assert not lies
    assert found.verified
    assert holds(text_of(outcome(found)), TRIGGER)


def test_the_budget_is_never_overdrawn_and_what_was_reached_still_fails() -> None:
    for budget in range(1, 60):
        model = Model(lambda body: float(holds(text_of(body), TRIGGER)))
        found = shrink(chat(prose(random.Random(budget), 500, TRIGGER)), model, rate=1.0, budget=budget)
        assert model.num_answers <= budget
        assert holds(text_of(outcome(found)), TRIGGER)
        assert found.exhausted or found.verified


def test_tries_that_are_made_together_are_counted_and_used_together() -> None:
    model, asked = Model(lambda body: 0.5 * holds(text_of(body), TRIGGER)), []

    def tries(body: Body, num: int) -> list[bool]:
        asked.append(num)
        return model(body, num)

    body = chat(prose(random.Random(1), 400, TRIGGER), temperature=0.8)
    found = shrink(body, tries, rate=0.5, budget=1203, at_once=8)
    assert all(num % 8 == 0 for num in asked)
    assert found.course.trials.num_calls == model.num_answers <= 1203
    assert num_words(found) <= NEAR


def test_an_answer_that_does_not_come_is_no_failure() -> None:
    body = chat(prose(random.Random(1), 50))
    found = shrink(body, lambda body, num: [], rate=1.0, budget=100)
    assert outcome(found) == body
    assert not found.verified


def test_going_again_asks_the_same() -> None:
    body = chat(prose(random.Random(1), 500, TRIGGER), temperature=0.8)
    model = Model(lambda body: 0.4 * holds(text_of(body), TRIGGER))
    first = outcome(shrink(body, model, rate=0.4, budget=900))
    asked = model.num_answers
    assert outcome(shrink(body, model, rate=0.4, budget=900)) == first
    assert model.num_answers == asked


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="failure rate"):
        shrink(chat("x"), lambda body, num: [True] * num, rate=rate, budget=10)


@pytest.mark.parametrize("prompt", ["one two kill three", ["one two kill three"], ["a", "b kill c"]])
def test_completions_are_cut_in_the_shape_they_have(prompt: Any) -> None:
    found = shrink({"prompt": prompt, "temperature": 0}, Model(lambda b: float("kill" in str(b["prompt"]))),
                   rate=1.0, budget=149)  # fmt: skip
    assert outcome(found)["prompt"] == ("kill" if isinstance(prompt, str) else ["kill"])


def test_token_ids_are_cut_one_by_one() -> None:
    found = shrink({"prompt": list(range(500)), "temperature": 0},
                   Model(lambda b: float({77, 300} <= set(b["prompt"]))), rate=1.0, budget=149)  # fmt: skip
    assert outcome(found)["prompt"] == [77, 300]


WORDS = st.lists(st.sampled_from(["a", "b", "c", "ddd", "é", "x.", "好", "น้ำ", "!\n\n", "end?"]), max_size=25)


@st.composite
def chats(draw: st.DrawFn) -> tuple[Body, list[str]]:
    """A chat, and words of it that a failure needs."""
    contents = [" ".join(words) for words in draw(st.lists(WORDS, min_size=1, max_size=5))]
    body = chat(*contents)
    if draw(st.booleans()):
        body["messages"].insert(0, {"role": "system", "content": " ".join(draw(WORDS))})
    present = sorted(set(text_of(body).split()))
    return body, draw(st.lists(st.sampled_from(present), max_size=3)) if present else []


@settings(max_examples=150, deadline=None)
@given(chats(), st.integers(1, 300), st.integers(0, 2))
def test_the_outcome_fails_is_no_longer_is_valid_and_has_nothing_to_spare(
    planted: tuple[Body, list[str]], budget: int, odd: int
) -> None:
    body, needed = planted

    def fails(body: Body) -> bool:
        text = text_of(body)
        return all(word in text for word in needed) and (odd == 0 or len(text) % 3 != odd)

    assume(fails(body))
    found = shrink(body, Model(lambda body: float(fails(body))), rate=1.0, budget=budget)
    left = outcome(found)
    assert fails(left)
    assert len(text_of(left)) <= len(text_of(body))
    assert left["messages"][-1]["role"] == "user"
    turns = [message["role"] for message in left["messages"] if message["role"] != "system"]
    assert all(one != other for one, other in pairwise(turns))
    assert left["max_tokens"] <= body["max_tokens"]
    assert {key: left[key] for key in ("model", "temperature")} == {key: body[key] for key in ("model", "temperature")}
    course = found.course
    if course.finest is None:
        assert found.exhausted or course.needs_length
        return
    parts = pieces(course.current.draft, course.finest)
    if len(parts) < 2:
        return
    for index in range(len(parts)):
        draft = joined(parts[:index] + parts[index + 1 :], body)
        assert draft is None or draft == course.current.draft or not fails(
            course.current.__class__(draft, 0.0, course.current.max_tokens).body(body)
        )  # fmt: skip
