import math

import pytest

from qgate.judge import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"), ("x", "—"), (True, "—"), (0, "0"), (0.1, "0.1"), (1.30000001, "1.3"), (9.7246, "9.72"),
        (331.8, "332"), (269030.4, "269030"), (2.5e7, "2.5e+07"), (0.00012345, "0.000123"), (1.2e-5, "0.000012"),
        (-0.0371, "-0.0371"), (math.nan, "nan"), (math.inf, "inf"), (1e-9, "1e-09"),
    ],
)  # fmt: skip
def test_numbers(value, text):
    assert units.number(value) == text


def test_a_harm_is_told_in_its_unit():
    assert units.harm("score_loss", 0.02) == "2 pp"
    assert units.harm("relative_score_loss", 0.15) == "15 %"
    assert units.harm("flip_rate", 0.093) == "9.3 %"
    assert units.harm("kl_mean", 0.06) == "0.06 nats"
    assert units.harm("kl_mean", None) == "—"


def test_a_level_is_told_in_per_cent():
    assert units.percent(0.0683) == "6.83 %"
    assert units.percent(None) == "—"
