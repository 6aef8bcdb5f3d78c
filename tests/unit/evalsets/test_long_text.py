"""long-text@1: its bytes, its make-up, its lengths and depths, and that every item can be answered."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from qgate import scorers
from qgate.io import evalsets
from qgate.schemas.evalset import Item
from qgate.schemas.recipe import EvalsetUse
from tests.unit.evalsets.remade import ROOT, Remade, remake, score

LENGTHS = {"1k": 1024, "2k": 2048, "4k": 4096, "8k": 8192, "16k": 16384, "32k": 32768}
READING = {
    *("one-needle", "several-needles", "key-value", "ordering", "counting", "contradiction", "summary", "tracking")
}
WRITING = {"story", "manual", "plan"}
TEMPLATE_TOKENS = 40
"""What a chat template with a default system prompt adds."""
MOST_BYTES = 8_000_000


@pytest.fixture(scope="module")
def items() -> tuple[Item, ...]:
    return evalsets.load(EvalsetUse(name="long-text@1"), Path("/")).items


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Remade:
    return remake("long-text", tmp_path_factory.mktemp("long"), hash_seed="7")


@pytest.fixture(scope="module")
def tokens() -> dict[str, int]:
    with (ROOT / "long-text" / "tokens.csv").open(encoding="utf-8", newline="") as stream:
        return {row["id"]: int(row["tokens"]) for row in csv.DictReader(stream)}


def test_the_generator_makes_the_very_same_bytes(remade: Remade) -> None:
    assert remade.items == (ROOT / "long-text" / "items.jsonl").read_bytes()
    assert len(remade.items) < MOST_BYTES


def test_there_is_enough_of_every_language_kind_length_and_level(items: tuple[Item, ...]) -> None:
    languages = Counter(item.language for item in items)
    assert len(items) >= 150
    assert languages["en"] / len(items) >= 0.5
    assert languages["zh"] / len(items) >= 0.25
    assert all(languages[language] >= 9 for language in ("ja", "ar", "ru", "es", "th"))
    assert {item.kind for item in items} == READING | WRITING
    assert set(Counter(item.difficulty for item in items)) == {1, 2, 3, 4, 5}
    cells = {(item.language, item.kind, item.slices["length"]) for item in items}
    assert {("en", kind, length) for kind in READING for length in LENGTHS} <= cells
    assert {("zh", kind, length) for kind in READING for length in list(LENGTHS)[:5]} <= cells


def test_prompt_template_and_answer_fit_the_length_and_fill_it(items: tuple[Item, ...], tokens: dict[str, int]) -> None:
    assert set(tokens) == {item.id for item in items}
    for item in items:
        if item.slices["length"] == "short":
            assert tokens[item.id] < 400
            continue
        room = LENGTHS[item.slices["length"]]
        assert item.max_tokens is not None
        used = tokens[item.id] + TEMPLATE_TOKENS + item.max_tokens
        assert 0.75 * room < used <= room, item.id


def test_depth_is_varied_evenly(items: tuple[Item, ...]) -> None:
    for kind in ("one-needle", "key-value"):
        depths = Counter(item.slices["depth"] for item in items if item.kind == kind)
        assert set(depths) == {"10", "30", "50", "70", "90"}
        assert max(depths.values()) - min(depths.values()) <= 1


def test_a_needle_stands_once_and_where_its_depth_says(items: tuple[Item, ...]) -> None:
    for item in items:
        if item.kind in {"one-needle", "key-value"}:
            (value,) = item.scorer.args["values"]
            document = item.messages[-1].content.rpartition("\n\n")[0]
            assert item.messages[-1].content.count(value) == 1, item.id
            at = 100 * document.index(value) / len(document)
            assert abs(at - int(item.slices["depth"])) < (20 if item.slices["length"] == "1k" else 5), item.id


def test_counted_sentences_are_as_many_as_the_answer_says(items: tuple[Item, ...], remade: Remade) -> None:
    facts = {"en": "Today the east bell rang.", "zh": "今天东边的钟响了。"}
    for item in items:
        if item.kind == "counting" and item.language in facts:
            assert item.messages[-1].content.count(facts[item.language]) == int(remade.references[item.id])


def test_values_to_be_named_stand_in_the_document(items: tuple[Item, ...]) -> None:
    for item in items:
        if item.kind in READING - {"counting"}:
            for value in [*item.scorer.args["values"], *item.scorer.args.get("none_of", [])]:
                assert value in item.messages[-1].content, item.id


def test_a_reference_answer_scores_one_and_an_empty_one_nothing(items: tuple[Item, ...], remade: Remade) -> None:
    for item in items:
        scorers.load(item.scorer.name).read(item.scorer.args)
        assert score(item, remade.references[item.id]) == 1, item.id
        assert score(item, "") == 0, item.id


def test_a_loop_or_a_rumour_costs(items: tuple[Item, ...], remade: Remade) -> None:
    for item in items:
        reference = remade.references[item.id]
        if item.kind in WRITING:
            half = reference[: len(reference) // 4]
            assert score(item, half * 8) < 0.8, item.id
        if item.kind == "summary":
            assert score(item, f"{reference} {item.scorer.args['none_of'][0]}") == 0, item.id


def test_no_document_says_a_sentence_twice_but_the_planted_ones(items: tuple[Item, ...]) -> None:
    for item in items:
        if item.kind == "one-needle" and item.language == "en":
            sentences = [part for part in item.messages[-1].content.split(". ") if not part.startswith("Entry")]
            assert len(sentences) == len(set(sentences)), item.id
