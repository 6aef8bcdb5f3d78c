"""A run in, what a GitHub step is told of it out: annotations, summary, outputs. Writes the files that the runner names."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from qgate.pipeline import Outcome
from qgate.reports import markdown
from qgate.reports.annotations import render as annotate


@contextmanager
def quoting(environment: Mapping[str, str]) -> Iterator[None]:
    """What is printed inside is words only: the runner takes a line of a model's answer such as `::error::…` for a command."""
    token = secrets.token_hex(16)
    is_step = environment.get("GITHUB_ACTIONS") == "true"
    if is_step:
        sys.stdout.write(f"::stop-commands::{token}\n")
    try:
        yield
    finally:
        if is_step:
            sys.stdout.write(f"::{token}::\n")


def tell(outcome: Outcome, environment: Mapping[str, str]) -> None:
    """Nothing, where `environment` is not a GitHub step's. Outputs: the `run`'s id, its `folder`, and `evidence` in it."""
    if environment.get("GITHUB_ACTIONS") == "true":
        sys.stdout.write(annotate(outcome.run, outcome.sheet))
    _append(environment.get("GITHUB_STEP_SUMMARY"), markdown.render(outcome.run, outcome.sheet))
    values = {
        "run": outcome.run.run_id,
        "folder": outcome.folder,
        "evidence": outcome.folder / "evidence.intoto.json",
    }
    _append(environment.get("GITHUB_OUTPUT"), "".join(f"{name}={value}\n" for name, value in values.items()))


def _append(file: str | None, text: str) -> None:
    """Other steps' lines are in it too."""
    if file:
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write(text)
