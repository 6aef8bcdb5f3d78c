"""instruction@1: its bytes, its make-up, and that every item can be met and is not met by nothing or by a loop."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from qgate import scorers
from qgate.io import evalsets
from qgate.schemas.evalset import Item
from qgate.schemas.recipe import EvalsetUse
from tests.unit.evalsets.remade import ROOT, Remade, remake, score

FOLDER = ROOT / "instruction"
KINDS = {
    *("count", "keywords", "order", "start-end", "case", "punctuation", "layout", "language", "data", "table", "code"),
    *("answer-only", "two-constraints", "three-constraints", "multi-turn", "system-rule"),
}


@pytest.fixture(scope="module")
def items() -> tuple[Item, ...]:
    return evalsets.load(EvalsetUse(name="instruction@1"), Path("/")).items


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Remade:
    return remake("instruction", tmp_path_factory.mktemp("instruction"), hash_seed="7")


def test_the_generator_makes_the_very_same_bytes(remade: Remade) -> None:
    assert remade.items == (FOLDER / "items.jsonl").read_bytes()


def test_there_is_enough_of_every_language_level_and_kind(items: tuple[Item, ...]) -> None:
    languages = Counter(item.language for item in items)
    assert len(items) >= 250
    assert languages["en"] / len(items) >= 0.5
    assert languages["zh"] / len(items) >= 0.25
    assert all(languages[language] >= 15 for language in ("ja", "ar", "ru", "es", "th"))
    levels = Counter(item.difficulty for item in items)
    assert set(levels) == {1, 2, 3, 4, 5}
    assert min(levels.values()) >= 40
    kinds = Counter(item.kind for item in items)
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= 12


def test_every_scorer_argument_is_sound(items: tuple[Item, ...]) -> None:
    for item in items:
        scorers.load(item.scorer.name).read(item.scorer.args)


def test_every_item_can_be_met(items: tuple[Item, ...], remade: Remade) -> None:
    assert [item.id for item in items if score(item, remade.references[item.id]) < 1.0] == []


def test_nothing_keeps_nothing(items: tuple[Item, ...]) -> None:
    assert {score(item, answer) for item in items for answer in ("", "\n \n", "...", "!!!!!!!!!!!!!!!!")} == {0.0}


def test_a_loop_keeps_nothing(items: tuple[Item, ...], remade: Remade) -> None:
    for item in items:
        reference = remade.references[item.id]
        assert score(item, (reference[:20] + " ") * 30) == 0.0, item.id
        assert score(item, reference + "\n" + "the the " * 300) == 0.0, item.id


def test_an_answer_to_another_item_does_not_do(items: tuple[Item, ...], remade: Remade) -> None:
    swapped = [score(item, remade.references[other.id]) for item, other in pairwise(items)]
    assert sum(swapped) / len(swapped) < 0.55


def test_dialogues_keep_the_rule_in_the_fixed_turns(items: tuple[Item, ...]) -> None:
    dialogues = [item for item in items if item.kind == "multi-turn"]
    for item in dialogues:
        assert [message.role for message in item.messages] == ["user", "assistant"] * (len(item.messages) // 2) + [
            "user"
        ]
        fixed = [message.content for message in item.messages if message.role == "assistant"]
        assert [score(item, answer) for answer in fixed] == [1.0] * (int(item.slices["turns"]) - 1), item.id


def test_prompts_differ(items: tuple[Item, ...]) -> None:
    prompts = Counter(tuple((message.role, message.content) for message in item.messages) for item in items)
    assert max(prompts.values()) == 1


def test_every_item_has_its_length_in_tokens(items: tuple[Item, ...]) -> None:
    with (FOLDER / "tokens.csv").open(encoding="utf-8", newline="") as stream:
        assert [row["id"] for row in csv.DictReader(stream)] == [item.id for item in items]


def test_the_card_has_the_sets_make_up() -> None:
    card = [sys.executable, str(ROOT / "card.py"), "instruction@1"]
    made = subprocess.run(card, check=True, capture_output=True, encoding="utf-8", cwd=ROOT.parent)
    assert made.stdout in (FOLDER / "README.md").read_text("utf-8")
