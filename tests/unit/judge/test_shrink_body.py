from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.judge.shrink_body import Draft, count, joined, pieces, read, write
from qgate.judge.shrink_roles import repair
from qgate.schemas.minimised import LEVELS, Body

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
BODIES: list[Body] = [
    {"messages": [{"role": "user", "content": "one two"}], "seed": 3, "vendor": {"x": 1}},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "what is this"}, IMAGE], "name": "n"}]},
    {"messages": [{"role": "user", "content": "x"}, CALL, {"role": "tool", "tool_call_id": "1", "content": "a b"}]},
    {"messages": [{"role": "system", "content": ""}, {"role": "user", "content": "y"}]},
    {"prompt": "a b c"},
    {"prompt": ["a b", "c d"]},
    {"prompt": [5, 6, 7]},
    {"prompt": [[5, 6], [7]]},
]


@pytest.mark.parametrize("body", BODIES)
def test_read_and_written_is_as_filed_at_every_level(body: Body) -> None:
    draft = read(body)
    assert write(draft, body) == body
    for level in LEVELS:
        assert joined(pieces(draft, level), body) == draft


def test_an_image_goes_or_stays_and_the_text_beside_it_is_cut() -> None:
    body = BODIES[1]
    first, second, third, image = pieces(read(body), "words")
    assert written((first, image), body)["messages"][0]["content"] == [{"type": "text", "text": "what "}, IMAGE]
    assert written((second, third), body)["messages"][0] == {
        "role": "user", "content": [{"type": "text", "text": "is this"}], "name": "n",
    }  # fmt: skip


def written(kept: Any, body: Body) -> Body:
    draft: Draft | None = joined(kept, body)
    assert draft is not None
    return write(draft, body)


def test_token_ids_are_pieces_and_count_one_each() -> None:
    draft = read({"prompt": [[5, 6], [7]]})
    assert count(draft, "words") == count(draft, "characters") == 3
    assert written(pieces(draft, "words")[1:], {"prompt": [[5, 6], [7]]}) == {"prompt": [[6], [7]]}


@pytest.mark.parametrize("body", [{}, {"prompt": []}, {"messages": []}])
def test_a_body_without_a_prompt_is_refused(body: Body) -> None:
    with pytest.raises(ValueError, match="neither"):
        read(body)


ROLES = st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), min_size=1, max_size=9)


@given(ROLES, st.data())
def test_a_repaired_chat_is_part_of_what_was_kept_and_no_less_regular(roles: list[str], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.sampled_from(range(len(roles))), unique=True))
    left = repair(kept, [{"role": role} for role in roles])
    assert set(left) <= set(kept)
    assert list(left) == sorted(left)
    assert repair(left, [{"role": role} for role in roles]) == left
    if left:
        assert roles[left[-1]] == roles[-1]
        for one, other in pairwise(left):
            assert roles[other] != "tool" or one == other - 1


@given(st.integers(1, 6), st.booleans(), st.data())
def test_a_chat_that_alternates_still_does_and_ends_with_the_user(
    rounds: int, aside: bool, data: st.DataObject
) -> None:
    roles = ["system"] * aside + ["user", "assistant"] * (rounds - 1) + ["user"]
    kept = data.draw(st.lists(st.sampled_from(range(len(roles))), unique=True))
    left = [roles[index] for index in repair(kept, [{"role": role} for role in roles]) if roles[index] != "system"]
    assert left == ["user", "assistant"] * (len(left) // 2) + ["user"] * (len(left) % 2)
    assert len(left) % 2 == 1 or not left
    assert bool(left) == any(roles[index] == "user" for index in kept)


def test_a_call_goes_with_its_results() -> None:
    chat = [
        {"role": "user"}, {"role": "assistant", "tool_calls": [1, 2]}, {"role": "tool"}, {"role": "tool"},
        {"role": "assistant"}, {"role": "user"},
    ]  # fmt: skip
    assert repair((0, 1, 2, 4, 5), chat) == (0, 4, 5)
    assert repair((0, 1, 2, 3, 4, 5), chat) == (0, 1, 2, 3, 4, 5)
