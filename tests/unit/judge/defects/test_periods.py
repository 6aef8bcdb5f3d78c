from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from qgate.judge.defects.periods import Run, final_run, inner_runs

FEW = st.text("ab ", max_size=40)
UNIT = st.text("abcdefgh", min_size=1, max_size=60)


def has_period(text: str, run: Run) -> bool:
    part = text[run.start : run.stop]
    return part[: -run.period] == part[run.period :]


def longest_final(text: str) -> int:
    """Length of the longest suffix that is at least two copies, by trying every period."""
    best = 0
    for period in range(1, len(text) // 2 + 1):
        length = period
        while length < len(text) and text[-length - 1] == text[-length - 1 + period]:
            length += 1
        if length >= 2 * period:
            best = max(best, length)
    return best


@given(st.text("ab", max_size=60))
def test_the_final_run_is_as_long_as_any(text: str) -> None:
    run = final_run(text)
    assert (0 if run is None else run.length) == longest_final(text)
    if run is not None:
        assert run.stop == len(text) and has_period(text, run)


@given(FEW, UNIT, FEW)
def test_a_long_run_inside_is_found_with_its_edges(before: str, unit: str, after: str) -> None:
    text = before + unit * (400 // len(unit) + 4) + after
    runs = list(inner_runs(text, 160))
    assert runs and all(has_period(text, run) and run.length >= 160 for run in runs)
    longest = max(runs, key=lambda run: run.length)
    assert longest.start <= len(before) and longest.stop >= len(text) - len(after)


@given(st.text(max_size=300))
def test_runs_do_not_overlap(text: str) -> None:
    runs = list(inner_runs(text * 3, 60))
    assert all(one.stop <= two.start for one, two in pairwise(runs))
