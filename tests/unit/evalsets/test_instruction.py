"""instruction@1: its bytes, its make-up, and that every item can be met and is not met by nothing or by a loop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from qgate import scorers
from qgate.io import evalsets
from qgate.schemas.evalset import Item
from qgate.schemas.recipe import EvalsetUse

FOLDER = Path(__file__).parents[3] / "evalsets" / "instruction"
KINDS = {
    *("count", "keywords", "order", "start-end", "case", "punctuation", "layout", "language", "data", "table", "code"),
    *("answer-only", "two-constraints", "three-constraints", "multi-turn", "system-rule"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the set made anew, in another process with another hash seed."""
    folder = tmp_path_factory.mktemp("made")
    script = [sys.executable, str(FOLDER / "generate.py"), "--out", str(folder), "--references", str(folder / "refs")]
    subprocess.run(script, check=True, cwd=folder, env={"PYTHONHASHSEED": "7"})
    return folder


@cache
def items() -> tuple[Item, ...]:
    """The set as a recipe gets it."""
    return evalsets.load(EvalsetUse(name="instruction@1"), FOLDER).items


def references(made: Path) -> dict[str, str]:
    """Id to an answer that keeps everything."""
    return {line["id"]: line["answer"] for line in map(json.loads, (made / "refs").read_text("utf-8").splitlines())}


def score(item: Item, answer: str) -> float:
    """What the set gives `answer`."""
    return scorers.load(item.scorer.name)(answer, item.scorer.args, item.language)


def test_the_generator_makes_the_same_bytes(made: Path) -> None:
    assert (made / "items.jsonl").read_bytes() == (FOLDER / "items.jsonl").read_bytes()


def test_size_languages_levels_and_kinds() -> None:
    languages = Counter(item.language for item in items())
    assert len(items()) >= 250
    assert languages["en"] * 2 >= len(items())
    assert languages["zh"] * 4 >= len(items())
    assert {language for language, number in languages.items() if number >= 15} == {
        "en",
        "zh",
        "ja",
        "ar",
        "ru",
        "es",
        "th",
    }
    levels = Counter(item.difficulty for item in items())
    assert set(levels) == {1, 2, 3, 4, 5}
    assert min(levels.values()) >= 20
    kinds = Counter(item.kind for item in items())
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= 12
    assert all(item.messages[-1].role == "user" for item in items())


def test_every_scorer_argument_is_sound() -> None:
    for item in items():
        scorers.check(item.scorer.name, item.scorer.args)


def test_every_item_can_be_met(made: Path) -> None:
    answers = references(made)
    assert [item.id for item in items() if score(item, answers[item.id]) < 1.0] == []


def test_nothing_keeps_nothing() -> None:
    assert {score(item, answer) for item in items() for answer in ("", "\n \n", "...", "!!!!!!!!!!!!!!!!")} == {0.0}


def test_a_loop_keeps_nothing(made: Path) -> None:
    answers = references(made)
    for item in items():
        opening = answers[item.id][:20]
        assert score(item, (opening + " ") * 60) == 0.0, item.id
        assert score(item, answers[item.id] + "\n" + "the the " * 1000) == 0.0, item.id


def test_an_answer_to_another_item_scores_lower_on_average(made: Path) -> None:
    answers = references(made)
    swapped = [score(item, answers[other.id]) for item, other in zip(items(), items()[1:], strict=False)]
    assert sum(swapped) / len(swapped) < 0.55


def test_prompts_differ() -> None:
    prompts = Counter(tuple((message.role, message.content) for message in item.messages) for item in items())
    assert max(prompts.values()) == 1
