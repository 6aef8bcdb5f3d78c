"""The plan: which steps a recipe means, and what their keys depend on."""

from dataclasses import replace

import pytest

from qgate.keys import EngineIdentity, generate_key, score_key
from qgate.plan import first_items, plan, sample
from qgate.schemas.evalset import Evalset, Item, Message, ScorerUse
from qgate.schemas.recipe import Recipe
from tests.unit.recipes import small

ENGINE = EngineIdentity("fake", "tool", "workers", "none", "float16", {"a": 1}, 8, repeatable=False)


def item(number: int, **fields: object) -> Item:
    base = {"id": f"i{number}", "messages": (Message(role="user", content=f"What is {number}?"),), "kind": "k"}
    return Item.model_validate({**base, "language": "en", "difficulty": 1, "scorer": ScorerUse(name="exact"), **fields})


SETS = {"./tiny": Evalset(name="tiny", version=1, sha256="0" * 64, items=tuple(item(n) for n in range(40)))}


def planned(**changes: object):  # type: ignore[no-untyped-def]
    return plan(Recipe.model_validate(small(**changes)), SETS)


def test_arms_of_a_recipe() -> None:
    steps = planned().generate
    assert [(s.variant, s.replicate, len(s.requests)) for s in steps] == [
        ("baseline", 0, 40),
        ("baseline", 1, 40),
        ("w8a8", 0, 40),
    ]
    assert steps[0].requests[3].id == "tiny/i3/greedy/0"


def test_every_seed_is_a_request_and_every_sampling_field_is_explicit() -> None:
    warm = {"temperature": 0.8, "max_tokens": 16, "seeds": [3, 5]}
    requests = planned(sampling={"warm": warm}).generate[0].requests
    assert [r.sampling.seed for r in requests[:4]] == [3, 5, 3, 5]
    assert requests[0].sampling.model_dump().keys() == {
        "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
        "max_tokens", "seed",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("own", "use", "expected"), [(None, None, 160), (900, None, 900), (None, 12, 12), (900, 50, 50), (9, 50, 9)]
)
def test_longest_answer(own: int | None, use: int | None, expected: int) -> None:
    sets = {"./tiny": SETS["./tiny"].model_copy(update={"items": (item(0, max_tokens=own),)})}
    recipe = Recipe.model_validate(small(evalsets=[{"name": "./tiny", "max_tokens": use}]))
    assert plan(recipe, sets).generate[0].requests[0].sampling.max_tokens == expected


def test_score_steps() -> None:
    scored = [(s.variant, s.replicate, s.source) for s in planned().score]
    assert scored == [
        ("baseline", 0, ("baseline", 0)),
        ("baseline", 1, ("baseline", 0)),
        ("w8a8", 0, ("baseline", 0)),
        ("baseline", 0, ("baseline", 1)),
        ("baseline", 0, ("w8a8", 0)),
    ]
    assert len(planned(token_evidence={"garble": False}).score) == 3
    assert planned(token_evidence={"enabled": False}).score == ()


def test_the_key_of_an_arm_holds_all_that_decides_its_bytes() -> None:
    step = planned().generate[0]
    keys = {generate_key(step, "digest", ENGINE)}
    for field, value in {
        "name": "vllm", "tool": "x", "workers": "x", "device": "x", "dtype": "bfloat16", "options": {"a": 2},
        "concurrency": 9, "repeatable": True,
    }.items():  # fmt: skip
        keys.add(generate_key(step, "digest", replace(ENGINE, **{field: value})))
    keys.add(generate_key(step, "other", ENGINE))
    keys.add(generate_key(replace(step, replicate=1), "digest", ENGINE))
    keys.add(generate_key(replace(step, requests=step.requests[:-1]), "digest", ENGINE))
    assert len(keys) == 12
    assert generate_key(planned().generate[0], "digest", ENGINE) in keys


def test_the_key_of_scores_holds_what_is_scored() -> None:
    step = planned().score[0]
    keys = {
        score_key(step, "digest", ENGINE, "source"),
        score_key(step, "digest", ENGINE, "other source"),
        score_key(replace(step, top_k=5), "digest", ENGINE, "source"),
        score_key(replace(step, max_items=5), "digest", ENGINE, "source"),
        score_key(replace(step, replicate=1), "digest", ENGINE, "source"),
    }
    assert len(keys) == 5


def test_a_sample_takes_whole_items_whatever_else_is_there() -> None:
    warm = {"temperature": 0.8, "max_tokens": 16, "seeds": [0, 1]}
    requests = planned(sampling={"warm": warm}).generate[0].requests
    part = sample(requests, 0.3)
    assert 0 < len(part) < len(requests)
    assert len(part) % 2 == 0
    assert sample(requests[:20], 0.3) == tuple(r for r in part if r in requests[:20])


def test_first_items_is_a_prefix_of_a_fixed_order() -> None:
    ids = [r.id for r in planned().generate[0].requests]
    assert first_items(ids, 5) < first_items(list(reversed(ids)), 9)
    assert first_items(ids, None) == set(ids)


def with_answers(*numbers: int) -> dict[str, Evalset]:
    items = tuple(item(n, **({"reference": f"It is {n}."} if n in numbers else {})) for n in range(40))
    return {"./tiny": SETS["./tiny"].model_copy(update={"items": items})}


def references(sets: dict[str, Evalset], **changes: object):  # type: ignore[no-untyped-def]
    return plan(Recipe.model_validate(small(**changes)), sets).references


def test_right_answers_are_scored_by_every_checkpoint_once_whatever_is_sampled() -> None:
    warm = {"temperature": 0.8, "max_tokens": 16, "seeds": [3, 5]}
    greedy = {"temperature": 0, "max_tokens": 16, "seeds": [0]}
    steps = references(with_answers(3, 7), sampling={"greedy": greedy, "warm": warm})
    assert [(s.variant, s.replicate) for s in steps] == [("baseline", 0), ("baseline", 1), ("w8a8", 0)]
    assert {s.requests for s in steps} == {steps[0].requests}
    assert [(r.id, r.completion, r.completion_ids) for r in steps[0].requests] == [
        ("tiny/i3/references/0", "It is 3.", None),
        ("tiny/i7/references/0", "It is 7.", None),
    ]
    assert [steps[1].label, steps[1].kind] == ["baseline: tiny · references again (1)", "score"]


def test_right_answers_need_an_item_that_has_one_and_can_be_left_out() -> None:
    assert not references(with_answers())
    assert not references(with_answers(3), token_evidence={"references": False})
    assert not references(with_answers(3), token_evidence={"enabled": False})
    assert len(references(with_answers(3), noise_floor={"replicates": 0})) == 2


def test_right_answers_of_as_many_items_as_answers_and_of_the_same() -> None:
    steps = references(with_answers(*range(40)), token_evidence={"max_items": 5})
    chosen = {r.id.split("/")[1] for r in steps[0].requests}
    assert len(chosen) == 5
    assert chosen == {each.split("/")[1] for each in first_items([f"tiny/i{n}/greedy/0" for n in range(40)], 5)}
