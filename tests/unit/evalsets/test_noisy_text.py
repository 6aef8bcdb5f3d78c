"""noisy-text@1: its bytes, its make-up, its twins, and that every item can be answered."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from qgate import scorers
from qgate.io import evalsets
from qgate.schemas.evalset import Item
from qgate.schemas.recipe import EvalsetUse
from tests.unit.evalsets.remade import ROOT, Remade, remake, score

NOISES = {
    *("typo", "ocr", "letters", "spacing", "case", "homoglyph", "fullwidth", "mojibake", "markup", "log", "emoji"),
    *("code-switch", "speech", "truncation", "control", "short"),
}


@pytest.fixture(scope="module")
def items() -> tuple[Item, ...]:
    return evalsets.load(EvalsetUse(name="noisy-text@1"), Path("/")).items


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Remade:
    return remake("noisy-text", tmp_path_factory.mktemp("noisy"), hash_seed="7")


def text(item: Item) -> str:
    return item.messages[-1].content


def test_the_generator_makes_the_very_same_bytes(remade: Remade) -> None:
    assert remade.items == (ROOT / "noisy-text" / "items.jsonl").read_bytes()


def test_there_is_enough_of_every_language_noise_and_level(items: tuple[Item, ...]) -> None:
    languages = Counter(item.language for item in items)
    assert len(items) >= 250
    assert languages["en"] / len(items) >= 0.5
    assert languages["zh"] / len(items) >= 0.25
    assert all(languages[language] >= 24 for language in ("ja", "ar", "ru", "es", "th"))
    assert {item.slices["family"] for item in items} == NOISES
    assert set(Counter(item.difficulty for item in items)) == {1, 2, 3, 4, 5}


def test_every_clean_item_has_three_twins_that_ask_the_same(items: tuple[Item, ...]) -> None:
    clean = {item.id: item for item in items if item.twin_of is None}
    twins: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.twin_of is not None:
            twins[item.twin_of].append(item)
    assert set(twins) == set(clean)
    for name, item in clean.items():
        assert [twin.slices["severity"] for twin in twins[name]] == ["1", "2", "3"]
        assert (item.slices["severity"], item.slices["noise"], item.kind) == ("0", "none", "clean")
        family = [item, *twins[name]]
        assert len({text(member) for member in family}) == 4
        for twin in twins[name]:
            assert (twin.scorer, twin.language, twin.difficulty) == (item.scorer, item.language, item.difficulty)
            assert twin.slices["noise"] == twin.kind == item.slices["family"]


def test_a_reference_answer_scores_one_and_an_empty_one_nothing(items: tuple[Item, ...], remade: Remade) -> None:
    for item in items:
        scorers.load(item.scorer.name).read(item.scorer.args)
        assert score(item, remade.references[item.id]) == 1, item.id
        assert score(item, "") == 0, item.id


def test_another_items_answer_is_wrong(items: tuple[Item, ...], remade: Remade) -> None:
    """An answer of the same task in the same language is right by accident only (a colour, a short number)."""
    by_task: dict[tuple[str, str], list[Item]] = defaultdict(list)
    for item in items:
        if item.twin_of is None:
            by_task[item.slices["task"], item.language].append(item)
    pairs = [(one, two) for group in by_task.values() for one in group for two in group if one.id != two.id]
    right = sum(score(one, remade.references[two.id]) == 1 for one, two in pairs)
    assert len(pairs) > 200
    assert right / len(pairs) < 0.1


def test_what_a_word_answer_hangs_on_is_in_every_twin(items: tuple[Item, ...]) -> None:
    """An answer that is a word of the clean prompt is still there after any noise, up to width and case."""
    clean = {item.id: text(item) for item in items if item.twin_of is None}
    looked_at = 0
    for item in items:
        (value, *_) = item.scorer.args.get("values", [""])
        if item.twin_of is None or not isinstance(value, str) or not value or value not in clean[item.twin_of]:
            continue
        assert squeezed(value) in squeezed(text(item)), item.id
        looked_at += 1
    assert looked_at > 150


def test_digits_survive_every_noise(items: tuple[Item, ...]) -> None:
    """The numbers of a question are all there in its twins, in order; noise may add some of its own."""
    clean = {item.id: text(item) for item in items if item.twin_of is None}
    for item in items:
        if item.twin_of is not None and item.scorer.name == "number":
            wanted = re.findall(r"\d+", clean[item.twin_of])
            found = iter(re.findall(r"\d+", unicodedata.normalize("NFKC", text(item))))
            assert all(number in found for number in wanted), item.id


def test_noise_grows_with_severity(items: tuple[Item, ...]) -> None:
    """Over all families, a worse twin shares fewer pairs of characters with its clean question."""
    clean = {item.id: text(item) for item in items if item.twin_of is None}
    kept: dict[str, list[float]] = defaultdict(list)
    for item in items:
        if item.twin_of is not None and item.kind not in {"log", "markup", "short"}:
            kept[item.slices["severity"]].append(shared(clean[item.twin_of], text(item)))
    mild, strong, worst = (sum(kept[severity]) / len(kept[severity]) for severity in "123")
    assert mild > strong > worst > 0.2


def test_short_prompts_are_short(items: tuple[Item, ...]) -> None:
    short = [text(item) for item in items if item.slices["family"] == "short"]
    assert len(short) >= 100
    assert max(map(len, short)) <= 60


def test_a_computed_number_is_not_read_off_the_prompt(items: tuple[Item, ...], remade: Remade) -> None:
    for item in items:
        if item.twin_of is None and item.slices["task"] in {"sum", "boxes", "stock"}:
            assert remade.references[item.id] not in re.findall(r"\d+", text(item)), item.id


def squeezed(value: str) -> str:
    """Compatibility form, lower case, no spaces."""
    return "".join(unicodedata.normalize("NFKC", value).casefold().split())


def shared(clean: str, noised: str) -> float:
    """Share of the clean text's character pairs that the noised text has."""
    pairs = [clean[at : at + 2] for at in range(len(clean) - 1)]
    return sum(pair in noised for pair in pairs) / len(pairs)
