"""Faults that need a long prompt, a trigger or a load, planted in the fake engine, through `qgate repro` from end to end."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests import repro_run
from tests.unit.judge.planted import TRIGGER, holds, prose, text_of
from tests.unit.tiny_checkpoint import write_checkpoint

LONG = {"garble": 1.0, "faults_above_prompt_tokens": 500}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return checkpoint(tmp_path / "model")


def checkpoint(folder: Path, **weights: Any) -> Path:
    """A folder that the fake engine serves; `weights` are the faults that come with it."""
    write_checkpoint(folder)
    (folder / "chat_template.jinja").write_text("plain", encoding="utf-8")
    if weights:
        (folder / "fake.json").write_text(json.dumps(weights), encoding="utf-8")
    return folder


def filed(text: str, candidate: dict[str, Any], baseline: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "request": repro_run.request(text, temperature=0.7, max_tokens=64), "candidate": candidate,
        "baseline": baseline, "reference": {"engine": "fake"}, **more,
    }  # fmt: skip


def test_a_kernel_that_fails_on_long_prompts(model: Path, tmp_path: Path) -> None:
    quantized = checkpoint(tmp_path / "quantized")
    sides = repro_run.side(quantized, "fake", **LONG), repro_run.side(model, "fake")
    report = repro_run.found(tmp_path, "long", filed(prose(random.Random(1), 900), *sides), calls=None)
    repro_run.only(report, "kernel_or_engine")
    cut = report.minimised
    assert cut is not None
    assert cut.needs == "length"
    assert cut.verified
    assert (tmp_path / "repro" / "long" / "rate.svg").read_text(encoding="utf-8").startswith("<svg")
    limits = cut.thresholds
    assert limits.longest_clear_words is not None
    assert limits.longest_clear_words + 1 == limits.shortest_failing_words < 900
    assert cut.after.num_words == limits.shortest_failing_words


def test_weights_that_fail_on_long_prompts(model: Path, tmp_path: Path) -> None:
    quantized = checkpoint(tmp_path / "quantized", garble=1.0, above_prompt_tokens=500)
    sides = repro_run.side(quantized, "fake"), repro_run.side(model, "fake")
    report = repro_run.found(tmp_path, "long", filed(prose(random.Random(1), 900), *sides), calls=None)
    repro_run.only(report, "weights")
    assert report.minimised is not None
    assert report.minimised.needs == "length"


def test_weights_that_fail_now_and_then_on_twelve_words_of_three_thousand(model: Path, tmp_path: Path) -> None:
    quantized = checkpoint(tmp_path / "quantized", garble=0.5, trigger=" ".join(TRIGGER))
    sides = repro_run.side(quantized, "fake"), repro_run.side(model, "fake")
    report = repro_run.found(tmp_path, "words", filed(prose(random.Random(1), 3000, TRIGGER), *sides), calls=None)
    repro_run.only(report, "weights")
    cut = report.minimised
    assert cut is not None
    assert cut.verified
    assert holds(text_of(cut.body), TRIGGER)
    assert cut.after.num_words <= 1.3 * len(TRIGGER)
    assert cut.rate.low <= 0.5 <= cut.rate.high


def test_a_race_that_needs_requests_in_flight(model: Path, tmp_path: Path) -> None:
    quantized = checkpoint(tmp_path / "quantized")
    sides = repro_run.side(quantized, "fake", race=0.4), repro_run.side(model, "fake")
    report = repro_run.found(tmp_path, "race", filed("Tell me of the sea.", *sides, concurrency=8), calls=None)
    repro_run.only(report, "nondeterminism_under_load")
    assert report.minimised is not None
    assert report.minimised.num_calls % 8 == 0


def test_answers_that_never_end_are_not_cut_to_where_none_does(model: Path, tmp_path: Path) -> None:
    quantized = checkpoint(tmp_path / "quantized")
    for folder, ends in ((model, {"eos_token_id": 2}), (quantized, {"eos_token_id": 0})):
        (folder / "generation_config.json").write_text(json.dumps(ends), encoding="utf-8")
    sides = repro_run.side(quantized, "fake"), repro_run.side(model, "fake")
    text = "Where is the lighthouse? The lighthouse is on the northern cape."
    report = repro_run.found(
        tmp_path, "endless", filed(text, *sides, recognise={"finish_reason": "length"}), calls=None
    )  # fmt: skip
    repro_run.only(report, "eos_or_configuration")
    cut = report.minimised
    assert cut is not None
    assert cut.apart
    assert cut.body["max_tokens"] > 1
    assert [(each.arm, each.failures == each.tries) for each in report.minimal] == [
        ("candidate", True),
        ("baseline", False),
    ]


def test_nothing_wrong_is_not_reproduced(model: Path, tmp_path: Path) -> None:
    sides = repro_run.side(checkpoint(tmp_path / "quantized"), "fake"), repro_run.side(model, "fake")
    report = repro_run.found(tmp_path, "well", filed("Tell me of the sea.", *sides))
    assert report.attribution.cause == "not_reproduced"
    assert report.excluded_rate is not None
    assert 0.05 < report.excluded_rate < 0.11
