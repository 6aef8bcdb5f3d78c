"""Words that every room says alike."""

import pytest

from qgate.wording import counted, near_or_known


@pytest.mark.parametrize(("num", "said"), [(0, "0 items"), (1, "1 item"), (2, "2 items")])
def test_one_thing_is_no_plural(num: int, said: str) -> None:
    assert counted(num, "item") == said


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("temprature", ["seed", "temperature"], "did you mean 'temperature'?"),
        ("W8a8", ["AWQ", "W8A8"], "did you mean 'W8A8'?"),
        ("--resluts", ["--force", "--results"], "did you mean '--results'?"),
        ("--x", ["--y", "--z"], "columns: --y, --z"),
        ("prompt", [], "columns: "),
    ],
)
def test_what_was_meant_is_named_else_all_that_is_known(name: str, known: list[str], said: str) -> None:
    assert near_or_known(name, known, "columns") == said
