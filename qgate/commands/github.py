"""A run in, what a GitHub step is told of it out: annotations, summary, outputs. Writes the files that the runner names."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from qgate.pipeline import Outcome
from qgate.reports import markdown
from qgate.reports.annotations import render as annotate


def tell(outcome: Outcome, environment: Mapping[str, str]) -> None:
    """Nothing, where `environment` is not a GitHub step's. Outputs: `folder` of the run, and `evidence`, the file in it."""
    if environment.get("GITHUB_ACTIONS") == "true":
        sys.stdout.write(annotate(outcome.run, outcome.sheet))
    _append(environment.get("GITHUB_STEP_SUMMARY"), markdown.render(outcome.run, outcome.sheet))
    evidence = outcome.folder / "evidence.intoto.json"
    _append(environment.get("GITHUB_OUTPUT"), f"folder={outcome.folder}\nevidence={evidence}\n")


def _append(file: str | None, text: str) -> None:
    """Other steps' lines are in it too."""
    if file:
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write(text)
