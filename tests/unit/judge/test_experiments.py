"""Tries become an experiment, with the try that a reader should see."""

from __future__ import annotations

import pytest

from qgate.judge.asks import Ask, Factor
from qgate.judge.experiments import experiment
from qgate.schemas.repro import Try


@pytest.mark.parametrize(
    ("tries", "shown"),
    [("good, broken, failed", "failed"), ("good, broken, broken", "broken"), ("good, fine", "good"), ("", None)],
)
def test_what_failed_is_shown_before_what_is_broken_otherwise(tries: str, shown: str | None) -> None:
    kinds = tries.split(", ") if tries else []
    made = [
        Try(failed=kind == "failed", text=kind, seed=seed, defects=("empty",) if kind == "broken" else ())
        for seed, kind in enumerate(kinds)
    ]
    factor = Factor("as_filed", "as filed", "", Ask({"messages": []}, 1))
    example = experiment(factor, "candidate", made, None, cost="new request").example
    assert (None if example is None else example.text) == shown
    assert example is None or example.seed == kinds.index(example.text or "")
