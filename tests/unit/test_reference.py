"""docs/reference.md is the page that docs/make_reference.py makes of the parser, the schemas and the plugins."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from qgate.errors import ExitCode
from qgate.judge.defects import DEFECTS
from qgate.schemas.recipe import Metric, Recipe
from tests.unit.test_cli import PINNED

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "make_reference.py"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_page_is_the_one_that_is_made(maker: ModuleType) -> None:
    assert maker.PAGE.read_text(encoding="utf-8") == maker.page(), "write it anew: python docs/make_reference.py"


def test_neither_the_terminal_nor_the_shell_changes_it(maker: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = maker.page()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("QGATE_RESULTS", "/elsewhere")
    assert maker.page() == before


def test_every_verb_metric_defect_and_exit_code_is_in_it(maker: ModuleType) -> None:
    page = maker.page()
    assert all(f"### `qgate {verb}`" in page for verb in PINNED)
    assert all(f"| `{name}` |" in page for name in (*get_args(Metric), *DEFECTS, *Recipe.model_fields))
    assert all(f"\n| {int(code)} | " in page for code in ExitCode)


def test_every_link_within_the_page_has_its_heading(maker: ModuleType) -> None:
    page = maker.page()
    headings = {line.lstrip("# ").strip("`").lower() for line in page.splitlines() if line.startswith("#")}
    links = {part.split(")")[0] for part in page.split("](#")[1:]}
    assert links
    assert links <= headings


def test_every_field_has_a_meaning(maker: ModuleType) -> None:
    assert not [line for line in maker.page().splitlines() if line.startswith("| `") and line.endswith("|  |")]
