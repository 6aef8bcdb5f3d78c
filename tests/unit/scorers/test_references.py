"""The right answer that a scorer's arguments hold: the scorer itself gives it 1; parts and rules are none."""

from __future__ import annotations

from typing import Any

import pytest

from qgate import scorers
from qgate.errors import EvalsetError
from qgate.io.scoring import with_references
from qgate.ports import Referenced
from qgate.schemas.evalset import Evalset, Item, ScorerUse

TEXTS = {"values": ["The lamp is green.", "Green."]}


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        *(
            (name, TEXTS, TEXTS["values"][0])
            for name in ("bleu", "chrf", "exact", "rouge", "similarity", "ter", "token_f1")
        ),
        ("choice", {"answer": "B", "options": ["red", "green"]}, "B"),
        ("number", {"value": "1200.50"}, "1200.50"),
        ("number", {"value": "1e3"}, "1000"),
        ("contains_all", {"values": ["green"], "none_of": ["red"]}, "green"),
        ("contains_all", {"values": [["green", "verdant"]]}, "green"),
    ],
)
def test_it_scores_1(name: str, args: dict[str, Any], expected: str) -> None:
    scorer = scorers.load(name)
    found = scorer.reference(args)
    assert found == expected
    assert scorer(found, args, "en") == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("contains_all", {"values": ["green", "lamp"]}),
        ("ordered", {"values": ["one", "two"]}),
        ("constraints", {"checks": [{"name": "punctuation:no_comma"}]}),
        ("enumeration", {"count": 3}),
        ("free_text", {"length": 10, "values": ["lamp"]}),
    ],
)
def test_parts_and_rules_are_no_answer(name: str, args: dict[str, Any]) -> None:
    assert scorers.load(name).reference(args) is None


def item(scorer: str, args: dict[str, Any], **fields: Any) -> Item:
    base = {"id": "i", "messages": ({"role": "user", "content": "?"},), "kind": "k", "language": "en", "difficulty": 1}
    return Item.model_validate({**base, "scorer": ScorerUse(name=scorer, args=args), **fields})


def of(*items: Item, **known: Any) -> list[str | None]:
    loaded = Evalset(name="tiny", version=1, sha256="0" * 64, items=items)
    table = {name: scorers.load(name) for name in scorers.NAMES} | known
    return [each.reference for each in with_references(loaded, table).items]


def test_an_item_s_own_answer_comes_before_its_scorer_s() -> None:
    assert of(item("exact", TEXTS, reference="It is green."), item("exact", TEXTS)) == [
        "It is green.",
        TEXTS["values"][0],
    ]
    assert of(item("ordered", {"values": ["a", "b"]}, reference="a b"), item("ordered", {"values": ["a", "b"]})) == [
        "a b", None,
    ]  # fmt: skip


class Own:
    """A scorer of somebody else's, that knows the right answer."""

    def __call__(self, text: str, args: dict[str, Any], language: str) -> float:
        return float(text == args["right"])

    def reference(self, args: dict[str, Any]) -> str | None:
        return args["right"]


def test_a_plugin_may_say_one_and_need_not() -> None:
    assert isinstance(Own(), Referenced)
    assert of(item("own", {"right": "yes"}), own=Own()) == ["yes"]
    assert of(item("own", {"right": " "}), own=Own()) == [None]
    assert of(item("own", {}), own=lambda text, args, language: 1.0) == [None]
    with pytest.raises(EvalsetError, match="the scorer 'own' fails on item i: 'right'"):
        of(item("own", {}), own=Own())
