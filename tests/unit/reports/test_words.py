import math

import pytest

from qgate.errors import ExitCode
from qgate.reports import words
from qgate.schemas.verdict import Verdict
from tests.unit.reports import sample

PRECISION = sample.PRECISION


def tier(**changes):
    return sample.sheet().tiers[0].model_copy(update=changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "public-chat may serve w8a8 (W8A8)"),
        ({"serve": None, "verdict": Verdict.FAIL}, "public-chat may serve nothing"),
        ({"serve": "baseline", "verdict": Verdict.FAIL}, "public-chat stays FP16: w8a8 (W8A8) fails"),
        ({"serve": "awq", "verdict": Verdict.FAIL}, "public-chat may serve awq (W4A16) instead: w8a8 (W8A8) fails"),
        (
            {"serve": "baseline", "verdict": Verdict.INCONCLUSIVE},
            "public-chat stays FP16: w8a8 (W8A8) is not settled",
        ),
        ({"default": "baseline", "serve": "baseline"}, "public-chat stays FP16"),
    ],
)
def test_what_a_tier_may_serve(changes, sentence):
    assert words.tier_sentence(tier(**changes), PRECISION) == sentence


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([], ExitCode.INCONCLUSIVE),
        (["PASS"], ExitCode.PASS),
        (["PASS", "INCONCLUSIVE"], ExitCode.INCONCLUSIVE),
        (["PASS", "INVALID"], ExitCode.INCONCLUSIVE),
        (["PASS", "VOID"], ExitCode.INCONCLUSIVE),
        (["INCONCLUSIVE", "FAIL"], ExitCode.FAIL),
    ],
)
def test_exit_code(verdicts, code):
    tiers = tuple(tier(verdict=Verdict(verdict)) for verdict in verdicts)
    assert sample.sheet().model_copy(update={"tiers": tiers}).exit_code is code


def test_sizes_and_shares():
    assert words.size(163_512_320) == "164 MB"
    assert words.size(5.4e9) == "5.4 GB"
    assert words.size(None) == "—"
    assert words.share(0.713) == "71.3 %"
    assert words.share(math.nan) == "—"


def test_what_did_not_pass_is_said_once_for_all_tiers():
    grouped = words.not_passed(sample.sheet())
    assert [key[:2] for key in grouped] == [("FAIL", "gptq"), ("INCONCLUSIVE", "awq")]
    assert all(tiers == ["public-chat", "agents", "batch-summaries"] for tiers in grouped.values())


def test_a_variant_that_a_tier_forbids_has_no_verdict():
    forbidden = words.in_tier(sample.sheet().tiers[3], "gptq")
    assert words.verdict_word(forbidden) == "n.a."
    assert words.verdict_word(None) == "n.a."


def test_a_moment_is_told_in_utc():
    assert words.moment("2026-11-29T19:37:28.123456+00:00") == "2026-11-29 19:37:28 UTC"
    assert words.moment("2026-11-29T20:37:28+01:00") == "2026-11-29 19:37:28 UTC"


def test_a_variant_that_could_not_be_run_is_told_once():
    run = sample.run().model_copy(update={"failures": {"fp8": "no FP8 product", "awq": "no memory"}})
    sheet = sample.sheet().model_copy(update={"findings": ("awq could not be run: no memory\nlog: awq.log",)})
    assert words.findings_of(run, sheet) == (*sheet.findings, "fp8 could not be run: no FP8 product")
