"""A request's values are written down once, and one thing is changed at a time."""

from __future__ import annotations

from typing import Any

import pytest

from qgate.judge import factors
from qgate.judge.asks import Ask, cheap_factors, defaults_taken, ladder
from qgate.judge.request_body import (
    as_request,
    content_text,
    filled,
    left_out,
    limit_for,
    messages_of,
    opening,
    prompt_text,
    raw_prompt,
    server_defaults,
    stop_strings,
    unread,
)
from qgate.schemas.incident import Request

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
FULL = filled({**CHAT, "temperature": 0.9, "seed": 5}, {}, 64)


def test_what_a_body_leaves_out_is_the_servers_then_neutral() -> None:
    defaults = server_defaults(
        {"temperature": 0.6, "top_k": 0, "max_new_tokens": 9, "eos_token_id": 2, "do_sample": True}
    )
    assert defaults == {"temperature": 0.6, "top_k": -1, "max_tokens": 9}
    full = filled({**CHAT, "top_p": 0.5}, defaults, 64)
    assert {name: full[name] for name in ("temperature", "top_p", "top_k", "max_tokens")} == {
        "temperature": 0.6, "top_p": 0.5, "top_k": -1, "max_tokens": 9,
    }  # fmt: skip
    assert "max_tokens" not in filled({**CHAT, "max_completion_tokens": 3}, defaults, 64)
    assert left_out({**CHAT, "top_p": 0.5, "max_completion_tokens": 3}) == (
        "temperature", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
    )  # fmt: skip
    assert defaults_taken({**CHAT, "temperature": 1}, defaults) == {"top_k": -1, "max_tokens": 9}
    assert (limit_for(None), limit_for(10), limit_for(400)) == (1024, 256, 800)


def test_the_engines_request_says_what_the_body_says() -> None:
    request = as_request("r", {**FULL, "max_completion_tokens": 7, "max_tokens": 64}, 3)
    assert request.sampling.temperature == 0.9
    assert request.sampling.max_tokens == 7
    assert request.sampling.seed == 3
    assert request.body is not None
    assert request.body["seed"] == 5
    assert request.prompt is None
    assert as_request("r", {"prompt": [1, 2]}, 0).prompt == (1, 2)
    assert as_request("r", {"prompt": ["a", "b"]}, 0).prompt == "a"
    assert as_request("r", {"prompt": "a", "logprobs": 3}, 0).logprobs


def test_turns_as_texts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]
    body = {
        "messages": [
            {"role": "developer", "content": "d"},
            {"role": "tool", "content": None},
            {"role": "user", "content": parts},
        ]
    }
    assert [(turn.role, turn.content) for turn in messages_of(body)] == [
        ("system", "d"),
        ("user", ""),
        ("user", "a\n\nb"),
    ]
    assert prompt_text(body) == "d\n\na\n\nb"
    assert content_text(7) == ""
    assert prompt_text({"prompt": [1]}) == ""
    assert raw_prompt(CHAT) is None
    assert stop_strings({"stop": "x"}) == ("x",)
    assert stop_strings({}) == ()


def test_what_the_reference_engine_does_not_obey_is_known() -> None:
    image = [{"type": "image_url", "image_url": {}}]
    asked = Request(body={"messages": [{"role": "user", "content": image}], "logit_bias": {"1": 2}, "min_tokens": 0})
    assert unread(asked) == ("logit_bias", "content that is not text")
    assert unread(Request(body=CHAT)) == ()


def test_seeds_are_the_filed_one_first_and_never_twice() -> None:
    ask = Ask(FULL)
    seeds = [ask.seed(number) for number in range(8)]
    assert seeds[0] == 5
    assert len(set(seeds)) == 8
    assert {Ask(FULL, one_seed=True).seed(number) for number in range(8)} == {5}
    assert [Ask(CHAT).seed(number) for number in range(3)] == [0, 1, 2]


def test_a_key_is_of_all_that_decides_the_answer() -> None:
    asks = [Ask(FULL), Ask(FULL, 4), Ask(FULL, one_seed=True), Ask(FULL, logprobs=True), Ask({**FULL, "top_p": 0.1})]
    assert len({ask.key for ask in asks}) == len(asks)
    assert Ask(dict(reversed(FULL.items()))).key == Ask(FULL).key


def test_a_tries_own_text_is_filled_in() -> None:
    ask = Ask({**FULL, "cache_salt": "{try}"})
    assert ask.body_of("u")["cache_salt"] == "u"
    assert ask.body_of("u")["messages"] == CHAT["messages"]


@pytest.mark.parametrize(
    ("ask", "defaults", "names"),
    [
        (Ask(FULL), {}, ["greedy", "one_seed", "look_for_nan"]),
        (Ask(FULL, 8), {}, ["greedy", "one_seed", "one_at_a_time", "look_for_nan"]),
        (Ask({**FULL, "temperature": 0.0}), {}, ["look_for_nan"]),
        (Ask(FULL), {"temperature": 0.9, "top_p": 1.0, "max_tokens": 3},
         ["greedy", "one_seed", "neutral_defaults", "look_for_nan"]),
    ],
)  # fmt: skip
def test_each_factor_changes_one_thing(ask: Ask, defaults: dict[str, Any], names: list[str]) -> None:
    found = list(cheap_factors(ask, defaults))
    assert [factor.name for factor in found] == names
    for factor in found:
        changed = {name for name in FULL if factor.ask.body.get(name) != ask.body.get(name)}
        others = [
            field for field in ("in_flight", "one_seed", "logprobs")
            if getattr(factor.ask, field) != getattr(ask, field)
        ]  # fmt: skip
        assert len(changed) + len(others) == 1
        assert factor.change
        assert factor.separates


def test_the_ladder_goes_down_from_the_filed_temperature() -> None:
    assert [factor.ask.temperature for factor in ladder(Ask(FULL))] == [0.7, 0.3]
    assert [factor.name for factor in ladder(Ask({**FULL, "temperature": 1.5}))] == [
        "temperature_1", "temperature_0.7", "temperature_0.3",
    ]  # fmt: skip
    assert factors.GREEDY not in {factor.name for factor in ladder(Ask(FULL))}


def user(*said: str) -> dict[str, Any]:
    return {
        "messages": [{"role": "system", "content": "Be kind."}, *({"role": "user", "content": each} for each in said)]
    }


@pytest.mark.parametrize(
    ("body", "start"),
    [
        (user("Before", "What\n\tis it?\x1b"), "What is it?"),
        (user("永" * 80), "永" * 59 + "…"),
        ({"messages": [{"role": "assistant", "content": "Alone"}]}, "Alone"),
        ({"prompt": "Once upon"}, "Once upon"),
        ({"prompt": [1, 2, 3]}, "3 token ids"),
        (user(""), ""),
    ],
)
def test_the_start_of_what_was_asked_is_on_one_line(body: dict[str, Any], start: str) -> None:
    assert opening(body) == start


def test_seeds_that_are_named_are_sent_in_turn_and_are_part_of_the_key() -> None:
    ask = Ask(FULL, seeds=(7, 9))
    assert [ask.seed(number) for number in range(4)] == [7, 9, 7, 9]
    assert ask.key not in {Ask(FULL).key, Ask(FULL, seeds=(9, 7)).key}
