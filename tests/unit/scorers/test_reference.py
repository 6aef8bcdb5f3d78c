"""docs/scorers.md says what the scorers' own argument models say."""

from __future__ import annotations

from pathlib import Path

from qgate import scorers
from qgate.scorers import checks, reference

PAGE = Path(__file__).parents[3] / "docs" / "scorers.md"


def test_the_page_is_the_one_that_the_models_make() -> None:
    assert PAGE.read_text("utf-8") == reference.markdown(), (
        "write it anew: python -c 'from qgate.scorers import reference; print(reference.markdown(), end=\"\")' > docs/scorers.md"
    )


def test_every_scorer_check_and_argument_is_described() -> None:
    page = reference.markdown()
    assert all(f"\n## `{name}`\n" in page for name in (*scorers.NAMES, *checks.NAMES))
    assert ": None\n" not in page
