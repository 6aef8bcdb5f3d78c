from __future__ import annotations

import pytest

from qgate.judge.defects import DEFECTS, find
from tests.unit.judge.defects.case_file import Case, read

CASES = read("cases.jsonl") + read("kinds.jsonl") + read("hostile.jsonl")


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case_comes_out_right(case: Case) -> None:
    assert tuple(sorted(hit.name for hit in find(case.seen))) == case.expect


def test_every_defect_has_cases_and_every_label_is_a_defect() -> None:
    assert {name for case in CASES for name in case.expect} == set(DEFECTS)
    assert len({case.id for case in CASES}) == len(CASES)


def test_every_defect_says_what_it_is_in_one_line() -> None:
    assert all(
        defect.name == name and defect.summary and "\n" not in defect.summary for name, defect in DEFECTS.items()
    )
