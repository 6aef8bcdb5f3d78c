"""What the pages say: every command parses, every link leads somewhere, every quoted line is in the results it is from."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from qgate.arguments import parse
from qgate.io import recipe
from qgate.schemas.recipe import Recipe
from tests.unit.recipes import small, write

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = [ROOT / "results" / "h200" / name for name in ("demo-vllm/summary.md", "rejudged.md")]
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def code(page: Path) -> Iterator[str]:
    """Every block of code, fenced or indented by four columns, without its indent."""
    fenced: list[str] | None = None
    indented: list[str] = []
    for line in [*page.read_text(encoding="utf-8").splitlines(), "end"]:
        if fenced is None and indented and line.strip() and not line.startswith("    "):
            yield "\n".join(indented)
            indented = []
        if line.startswith("```"):
            if fenced is not None:
                yield "\n".join(fenced)
            fenced = [] if fenced is None else None
        elif fenced is not None:
            fenced.append(line)
        elif line.startswith("    ") or (indented and not line.strip()):
            indented.append(line[4:])


def commands(page: Path) -> Iterator[list[str]]:
    """The arguments of every line of code that is a `qgate …`, with a prompt or without; `qgate …` in text is not looked at.

    The reference's lines are patterns, not commands.
    """
    for block in [] if page.stem == "reference" else code(page):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r" *(\$ )?qgate ", line):
                yield shlex.split(line.strip().removeprefix("$ ").removeprefix("qgate "), comments=True)


def fragments(page: Path) -> Iterator[dict[str, Any]]:
    """Every block of code that is a part of a recipe."""
    for block in code(page):
        try:
            value = yaml.safe_load(block)
        except yaml.YAMLError:
            continue
        if isinstance(value, dict) and {str(key) for key in value} <= set(Recipe.model_fields) - {"name"}:
            yield value


def test_there_are_commands_to_look_at() -> None:
    assert sum(1 for page in PAGES for _ in commands(page)) > 40


@by_page
def test_every_command_parses(page: Path) -> None:
    for arguments in commands(page):
        parse(arguments)  # SystemExit where it does not


@by_page
def test_every_part_of_a_recipe_is_one(page: Path, tmp_path: Path) -> None:
    ready = {
        name: {"checkpoint": {"path": name}, "precision": bits} for name, bits in (("awq", "W4A16"), ("w8a8", "W8A8"))
    }
    chat = {"default": "awq", "allow": ["awq"], "criteria": [{"metric": "score_loss", "margin": 0.05}]}
    whole = small(variants=ready, engine={"name": "vllm"}, evalsets=[{"name": "instruction@1"}], tiers={"chat": chat})
    for part in fragments(page):
        for tier in part.get("tiers", {}).values():
            tier.setdefault("default", "awq")
            tier.setdefault("allow", ["awq"])
        recipe.load(write(tmp_path, {**whole, **part}))  # RecipeError where it is none


def test_there_are_parts_of_recipes_to_look_at() -> None:
    assert {page.stem for page in PAGES if list(fragments(page))} >= {"README", "own-sets", "gpu", "quantizers"}


def test_every_page_is_reached_from_the_first() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if f"](docs/{page.name})" not in first] == []


@by_page
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    files = [target for target in targets if "://" not in target]
    assert [target for target in files if not (page.parent / target).exists()] == []


def test_the_tutorial_quotes_the_run_word_for_word() -> None:
    told = "\n".join(path.read_text(encoding="utf-8") for path in RUN)
    lines = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8").splitlines()
    quoted = [line.strip().removeprefix("> ") for line in lines if line.strip().startswith("> ")]
    assert len(quoted) > 5
    assert [line for line in quoted if line not in told] == [], "results/h200 changed: quote it anew"
