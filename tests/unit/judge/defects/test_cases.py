from __future__ import annotations

import pytest

from qgate.judge.defects import DEFECTS, find
from tests.unit.judge.defects.case_file import Case, read

CASES = read("cases.jsonl")


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_given_cases_come_out_right(case: Case) -> None:
    assert tuple(sorted(hit.name for hit in find(case.seen))) == case.expect


def test_every_label_is_a_registered_defect() -> None:
    assert {name for case in CASES for name in case.expect} <= set(DEFECTS)
