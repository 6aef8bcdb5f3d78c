"""What the pages say: every command parses, every link leads somewhere, every quoted line is in the results it is from."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from qgate import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = [ROOT / "results" / "h200" / name for name in ("demo-vllm/summary.md", "rejudged.md")]
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def commands(page: Path) -> Iterator[list[str]]:
    """The arguments of every `$ qgate …` line; `qgate …` within a line of text is not looked at."""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("$ qgate "):
            yield shlex.split(line.removeprefix("$ qgate "), comments=True)


def test_there_are_commands_to_look_at() -> None:
    assert sum(1 for page in PAGES for _ in commands(page)) > 20


@by_page
def test_every_command_parses(page: Path) -> None:
    for arguments in commands(page):
        cli.parse(arguments)  # SystemExit where it does not


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
