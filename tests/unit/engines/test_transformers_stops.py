"""Texts that end an answer, in the transformers worker: seen as soon as the last token completes one, and cut off."""

from __future__ import annotations

import runpy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from qgate.engines.transformers import WORKERS

Stops: Any = runpy.run_path(str(WORKERS / "transformers_stops.py"))["Stops"]


class Bytes:
    """A tokenizer of single bytes: the most tokens that a text can have."""

    def decode(self, ids: list[int], **options: object) -> str:
        return bytes(ids).decode("utf-8", errors="replace")


TEXT = st.text(alphabet="ab\n。é", max_size=60)
STOP = st.text(alphabet="ab\n。é", min_size=1, max_size=5)


@given(TEXT, st.lists(STOP, max_size=3))
def test_generation_ends_where_the_first_stop_is_complete(text: str, stops: list[str]) -> None:
    found, ids = Stops(Bytes(), stops), list(text.encode())
    ended = next((num for num in range(1, len(ids) + 1) if found.reached(ids[:num])), None)
    first = min((text.find(stop) + len(stop) for stop in stops if stop in text), default=None)
    assert ended == (None if first is None else len(text[:first].encode()))
    if ended is not None:
        said = bytes(ids[:ended]).decode()
        assert found.cut(said) == said[: min(said.find(stop) for stop in stops if stop in said)]


@given(TEXT)
def test_without_stops_nothing_ends_and_nothing_is_cut(text: str) -> None:
    found = Stops(Bytes(), ("",))
    assert not any(found.reached(list(text.encode())[:num]) for num in range(len(text)))
    assert found.cut(text) == text
