"""Worlds with noise in them: flaky faults, missing experiments, two causes at once. No cause is named that is not there.

On the fake engine, from end to end. A cause may stay undetermined; it may not be another one, and where a second fault does
a part of it the confidence may not be high.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from qgate.schemas.repro import Attribution
from tests.unit.test_repro import Bench, is_certain
from tests.unit.tiny_checkpoint import write_checkpoint

Plants = dict[tuple[str, str], object]
"""(side, file) to what stands in it."""
FLAKY = (0.15, 0.25, 0.35, 0.5, 0.6)
FAKE, EOS, TEMPLATE = "fake.json", "generation_config.json", "chat_template.jinja"
RIGHT = hashlib.sha256(b"right").hexdigest()
UNTOLD = {"undetermined", "not_reproduced"}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    return Bench(tmp_path)


def said(bench: Bench, plants: Plants, **fields: Any) -> Attribution:
    for (side, file), value in plants.items():
        bench.plant(side, file, value)
    return bench.run(bench.incident(**fields)).attribution


def in_both(value: object) -> Plants:
    return {("candidate", FAKE): value, ("baseline", FAKE): value}


def world(cause: str, rate: float) -> tuple[Plants, dict[str, Any]]:
    """What has this cause alone."""
    hot = {"garble": rate, "above_temperature": 0.5}
    return {
        "weights": ({("candidate", FAKE): {"garble": rate}}, {}),
        "kernel_or_engine": ({}, {"candidate": {"options": {"bad_kernel": rate}}}),
        "nondeterminism_under_load": ({}, {"candidate": {"options": {"race": rate}}, "concurrency": 8}),
        "baseline_too": (in_both({"garble": rate}), {}),
        "sampling": (in_both(hot), {}),
    }[cause]


@pytest.mark.parametrize("rate", FLAKY)
@pytest.mark.parametrize(
    "cause", ["weights", "kernel_or_engine", "nondeterminism_under_load", "baseline_too", "sampling"]
)
def test_a_flaky_fault_is_told_as_what_it_is(cause: str, rate: float, bench: Bench) -> None:
    plants, fields = world(cause, rate)
    found = said(bench, plants, **fields)
    assert (found.cause, found.confidence) == (cause, "high"), found.summary


@pytest.mark.parametrize("rate", FLAKY)
def test_a_flaky_overflow_is_not_told_as_the_weights(rate: float, bench: Bench) -> None:
    for side in ("candidate", "baseline"):
        write_checkpoint(bench.root / side, dtype="float16")
    found = said(bench, {("candidate", FAKE): {"overflow": rate}})
    assert found.cause == "kernel_or_engine", found.summary


@pytest.mark.parametrize("rate", FLAKY[:2])
@pytest.mark.parametrize("other", ["bad_kernel", "race", "overflow"])
def test_two_causes_in_equal_parts_are_not_told_as_one_for_sure(other: str, rate: float, bench: Bench) -> None:
    """Up to a quarter each: from a third on, what fails by both is so much that either alone does clearly over half."""
    for side in ("candidate", "baseline"):
        write_checkpoint(bench.root / side, dtype="float16")
    weights = {"garble": rate, **({"overflow": rate} if other == "overflow" else {})}
    options = {} if other == "overflow" else {other: rate}
    found = said(
        bench, {("candidate", FAKE): weights}, candidate={"options": options}, concurrency=8 if other == "race" else 1
    )
    assert found.cause in {"weights", *UNTOLD}
    assert found.confidence != "high", found.summary
    assert found.would_raise


@pytest.mark.parametrize("rate", [0.2, 0.35, 0.6, 1.0])
@pytest.mark.parametrize("share", [0.33, 0.5])
def test_an_unquantized_model_that_fails_more_seldom_is_not_told_to_fail_alike(
    rate: float, share: float, bench: Bench
) -> None:
    found = said(bench, {("candidate", FAKE): {"garble": rate}, ("baseline", FAKE): {"garble": rate * share}})
    assert found.cause in {"weights", *UNTOLD}, found.summary


@pytest.mark.parametrize(
    "missing", [{"baseline": None}, {"reference": None}, {"reference": {"options": {"refuse_start": True}}}]
)
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_weights_are_not_named_without_what_separates_them(rate: float, missing: dict[str, Any], bench: Bench) -> None:
    found = said(bench, {("candidate", FAKE): {"garble": rate}}, **missing)
    assert found.cause == "undetermined", found.summary
    assert found.would_raise


@pytest.mark.parametrize("rate", [0.3, 1.0])
@pytest.mark.parametrize(
    ("file", "candidate", "baseline"),
    [(TEMPLATE, "one", "another"), (EOS, {"eos_token_id": [2, 7]}, {"eos_token_id": 2})],
)
def test_files_that_differ_and_do_no_harm_are_not_blamed(
    rate: float, file: str, candidate: object, baseline: object, bench: Bench
) -> None:
    found = said(
        bench, {("candidate", FAKE): {"garble": rate}, ("candidate", file): candidate, ("baseline", file): baseline}
    )
    assert found.cause in {"weights", "undetermined"}, found.summary


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_a_template_beside_bad_weights_is_named_only_where_it_mends_all(rate: float, bench: Bench) -> None:
    plants: Plants = {
        ("candidate", TEMPLATE): "wrong", ("baseline", TEMPLATE): "right",
        ("candidate", FAKE): {"trained_template": RIGHT, "garble": rate}, ("baseline", FAKE): {"trained_template": RIGHT},
    }  # fmt: skip
    found = said(bench, plants)
    assert (found.cause == "template_or_tokenizer") == (rate == 0), found.summary
    assert found.cause in {"template_or_tokenizer", "weights", "undetermined"}


@pytest.mark.parametrize("ends", [{"eos_token_id": 0}, {"eos_token_id": [0, 7]}])
@pytest.mark.parametrize("both", [False, True])
def test_an_end_that_is_lost_in_one_arm_or_in_both(ends: dict[str, Any], both: bool, bench: Bench) -> None:
    plants: Plants = {("candidate", EOS): ends, ("baseline", EOS): ends if both else {"eos_token_id": 2}}
    found = said(bench, plants, recognise={"finish_reason": "length"})
    assert found.cause == ("baseline_too" if both else "eos_or_configuration"), found.summary


def test_weights_that_fail_always_stay_certain(bench: Bench) -> None:
    bench.plant("candidate", FAKE, {"garble": 1.0})
    is_certain(bench.run(), "weights")
