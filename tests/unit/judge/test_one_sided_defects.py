"""A defect that is only seen beside the baseline is no rise of defects: as many answers go the other way."""

from dataclasses import replace

from qgate.judge.criteria import all_defects, metric_of
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
