"""The cut of a set: what `where` and `limit` keep."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.errors import EvalsetError
from qgate.io.evalset_cut import cut, spread
from qgate.schemas.evalset import Item, Message, ScorerUse
from qgate.schemas.recipe import EvalsetUse


def item(name: str, kind: str = "copy", language: str = "en", twin_of: str | None = None, **slices: str) -> Item:
    return Item(
        id=name,
        messages=(Message(role="user", content="?"),),
        kind=kind,
        language=language,
        difficulty=1,
        scorer=ScorerUse(name="exact"),
        slices=slices,
        twin_of=twin_of,
    )


GRID = tuple(
    item(f"{kind}-{language}-{number}", kind, language)
    for kind in ("a", "b", "c")
    for language in ("en", "zh")
    for number in range(5)
)


def family(name: str, kind: str) -> list[Item]:
    return [item(name), *(item(f"{name}-{severity}", kind, twin_of=name) for severity in "123")]


@given(st.permutations(GRID), st.integers(1, 40))
def test_the_cut_hangs_on_the_ids_and_not_on_the_order(order: list[Item], limit: int) -> None:
    use = EvalsetUse(name="x", limit=limit)
    assert {entry.id for entry in cut(tuple(order), use)} == {entry.id for entry in cut(GRID, use)}


@given(st.integers(1, 29))
def test_a_smaller_limit_gives_a_part_of_a_larger_one(limit: int) -> None:
    smaller = {entry.id for entry in cut(GRID, EvalsetUse(name="x", limit=limit))}
    larger = {entry.id for entry in cut(GRID, EvalsetUse(name="x", limit=limit + 1))}
    assert len(smaller) == limit
    assert smaller < larger


@given(st.integers(1, 30))
def test_the_cut_is_even_over_kinds_and_languages(limit: int) -> None:
    kept = cut(GRID, EvalsetUse(name="x", limit=limit))
    counts = Counter((entry.kind, entry.language) for entry in kept)
    cells = [counts[kind, language] for kind in "abc" for language in ("en", "zh")]
    assert max(cells) - min(cells) <= 1


def test_the_cut_stands_in_the_order_of_the_set() -> None:
    kept = cut(GRID, EvalsetUse(name="x", limit=11))
    assert [entry.id for entry in kept] == [entry.id for entry in GRID if entry in kept]


@given(st.integers(1, 23))
def test_a_twin_never_comes_without_its_clean_item(limit: int) -> None:
    items = tuple(entry for number in range(6) for entry in family(f"f{number}", "ab"[number % 2]))
    kept = cut(items, EvalsetUse(name="x", limit=limit))
    ids = {entry.id for entry in kept}
    assert len(kept) == limit
    assert all(entry.twin_of in ids for entry in kept if entry.twin_of)
    assert len({entry.twin_of or entry.id for entry in kept}) == -(-limit // 4)


def test_spread_loses_nothing() -> None:
    assert sorted(spread(GRID), key=lambda entry: entry.id) == sorted(GRID, key=lambda entry: entry.id)


def test_a_large_set_is_cut_quickly() -> None:
    items = tuple(item(f"t{number}", "traffic", "und") for number in range(20_000))
    began = time.process_time()
    assert len(cut(items, EvalsetUse(name="x", limit=5000))) == 5000
    assert time.process_time() - began < 2


def test_where_takes_slices_and_the_fields_of_an_item() -> None:
    items = (item("a", length="1k"), item("b", length="2k"), item("c", "other", "zh", length="2k"))
    assert [entry.id for entry in cut(items, EvalsetUse(name="x", where={"length": ("2k",)}))] == ["b", "c"]
    both = EvalsetUse(name="x", where={"length": ("1k", "2k"), "language": ("zh",), "difficulty": ("1",)})
    assert [entry.id for entry in cut(items, both)] == ["c"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"lenght": ("1k",)}, "did you mean 'length'?"),
        ({"length": ("1K",)}, "did you mean '1k'?"),
        ({"length": ("1k",), "language": ("zh",)}, "`where` leaves no item"),
    ],
)
def test_a_where_that_keeps_nothing_is_an_error(where: dict[str, tuple[str, ...]], expected: str) -> None:
    items = (item("a", length="1k"), item("c", "other", "zh", length="2k"))
    with pytest.raises(EvalsetError) as caught:
        cut(items, EvalsetUse(name="x", where=where))
    assert expected in f"{caught.value.message} {caught.value.advice}"
