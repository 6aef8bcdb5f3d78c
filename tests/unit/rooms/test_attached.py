"""One server does not answer for two checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qgate.errors import RecipeError
from qgate.io import recipe
from qgate.ports import load_engine
from qgate.rooms.attached import check_servers
from tests.unit.recipes import small, write

A, B = "http://127.0.0.1:8000/v1", "http://127.0.0.1:8001"


def check(folder: Path, base: dict[str, Any], w8a8: dict[str, Any], path: str = "w8a8") -> None:
    options = {"name": "openai", "options": {"base_url": A, **base}}
    variants = {"w8a8": {"checkpoint": {"path": path}, "precision": "W8A8", "engine_args": w8a8}}
    loaded = recipe.load(write(folder, small(engine=options, variants=variants)))
    check_servers(loaded, load_engine("openai"))


@pytest.mark.parametrize(
    ("base", "w8a8"),
    [
        ({}, {}),
        ({}, {"base_url": A + "/"}),
        ({}, {"base_url": "http://LocalHost:8000"}),
        ({}, {"base_url": "http://[::1]:8000/v1"}),
        ({"model": "m"}, {}),
        ({}, {"model": "m"}),
        ({"model": "m"}, {"model": "m"}),
    ],
)
def test_two_checkpoints_at_one_server_under_one_name_are_refused(
    tmp_path: Path, base: dict[str, Any], w8a8: dict[str, Any]
) -> None:
    with pytest.raises(
        RecipeError, match=r"variants\.w8a8: it would be asked at http://127\.0\.0\.1:8000 as baseline is"
    ):
        check(tmp_path, base, w8a8)


def test_a_scheme_s_own_port_may_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"variants\.w8a8: it would be asked at https://chat\.example:443 as baseline is"
    ):
        check(tmp_path, {"base_url": "https://chat.example/v1"}, {"base_url": "https://Chat.example:443/v1"})


def test_servers_or_names_of_their_own_and_a_control_are_taken(tmp_path: Path) -> None:
    check(tmp_path, {}, {"base_url": B})
    check(tmp_path, {"model": "chat"}, {"model": "chat-w8a8"})
    check(tmp_path, {}, {}, path="model")


def test_an_engine_that_serves_the_checkpoint_itself_needs_none(tmp_path: Path) -> None:
    check_servers(recipe.load(write(tmp_path, small())), load_engine("fake"))
