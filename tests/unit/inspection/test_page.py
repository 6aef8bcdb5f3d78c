"""docs/inspect.md lists the findings that there are, word for word."""

import runpy
from pathlib import Path

from qgate.inspection import catalogue

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_up_to_date() -> None:
    made = runpy.run_path(str(DOCS / "make_inspect.py"))
    text = (DOCS / "inspect.md").read_text(encoding="utf-8")
    assert made["page"](text) == text, "run `python docs/make_inspect.py`"
    for name in catalogue.CODES:
        assert f"| `{name}` |" in text
