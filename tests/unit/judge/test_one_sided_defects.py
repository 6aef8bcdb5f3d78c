"""A defect that is only seen beside the baseline is no rise of defects: as many answers go the other way."""

from dataclasses import replace
from math import isnan, nan

import pytest

from qgate.judge.criteria import all_defects, metric_of, truncated
from qgate.schemas.evidence import DefectHit
from tests.unit.judge.made import row

TRUNCATED = (DefectHit("truncation"),)
LOOPING = (DefectHit("repetition_loop"), DefectHit("truncation"))


def test_truncation_alone_is_no_rise() -> None:
    reference, other = row(), replace(row(), defects=TRUNCATED)
    assert metric_of("defect_increase").harm(reference, other) == 0
    assert metric_of("defect_rate").harm(reference, other) == 0
    assert all_defects(other) == frozenset()


def test_named_it_counts_towards_the_rate() -> None:
    other = replace(row(), defects=TRUNCATED)
    assert metric_of("defect_rate", ("truncation",)).harm(row(), other) == 1


def test_what_comes_with_it_counts() -> None:
    other = replace(row(), defects=LOOPING)
    assert metric_of("defect_increase").harm(row(), other) == 1
    assert all_defects(other) == {"repetition_loop"}


@pytest.mark.parametrize(
    ("reason", "num_tokens", "share"),
    [("stop", None, 0.0), ("length", None, 1.0), ("max_tokens", 20, 1.0), (None, 20, 0.0), (None, None, nan)],
)
def test_an_end_that_nobody_tells_is_missing_not_whole(
    reason: str | None, num_tokens: int | None, share: float
) -> None:
    other = replace(row(), finish_reason=reason, completion_tokens=num_tokens)
    for found in (truncated(other), metric_of("truncation_increase").harm(row(), other)):
        assert found == share or (isnan(found) and isnan(share))
