"""Causes of bad answers made on the demo model, each served for real and told by `qgate repro` from all the others.

Uses the locked environment `llmcompressor` and the transformers engine. Three and a half minutes of CPU time, five on the
clock where two cores are shared; most of it is models being loaded, of which every incident needs two or three. The
faults that need a long prompt or a load are in test_repro_faults.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qgate.schemas.repro import Repro
from tests import repro_bad_kernel, repro_causes, repro_run
from tests.tools import tool_or_skip

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
QUESTION = "What is the capital of France?"
ENGINE = "transformers"
NOT_PARIS = {"scorer": {"name": "contains_all", "args": {"values": ["Paris"]}}}
"""Recognises what no detector of defects does: `333333333333`, or a word of another subject."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One store for all: what the unquantized model answered is asked for once."""
    tool_or_skip("llmcompressor")
    folder = tmp_path_factory.mktemp("repro")
    with pytest.MonkeyPatch.context() as patch:
        repro_bad_kernel.install(patch)
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def w4a16(results: Path, demo_model: Path) -> Path:
    """A quantized copy with nothing wrong."""
    return repro_causes.w4a16(demo_model, results / "w4a16")


Found = Callable[..., Repro]


@pytest.fixture
def found(results: Path, demo_model: Path, request: pytest.FixtureRequest) -> Found:
    """Runs an incident of this candidate against the unquantized model in the same engine."""

    def run(candidate: Path, engine: str = ENGINE, *, calls: int = 0, **fields: Any) -> Repro:
        filed = {
            "request": repro_run.request(QUESTION, max_tokens=24), "candidate": repro_run.side(candidate, engine),
            "baseline": repro_run.side(demo_model, engine), **fields,
        }  # fmt: skip
        return repro_run.found(results, request.node.name, filed, calls=calls)

    return run


def test_weights_rounded_too_far(found: Found, results: Path, demo_model: Path) -> None:
    report = found(repro_causes.over_quantized(demo_model, results / "rtn2", bits=2), calls=24)
    repro_run.only(report, "weights")
    cut = report.minimised
    assert cut is not None
    assert cut.verified
    assert cut.after.num_words < cut.before.num_words
    assert cut.after.temperature == 0


def test_one_scale_of_three_million_spoiled(found: Found, results: Path, demo_model: Path) -> None:
    spoiled = repro_causes.w4a16(demo_model, results / "spoiled", spoil=repro_causes.one_scale_spoiled)
    repro_run.only(found(spoiled), "weights")


def test_another_familys_chat_template(found: Found, results: Path, demo_model: Path) -> None:
    foreign = repro_causes.with_template(demo_model, results / "template", repro_causes.FOREIGN_TEMPLATE)
    report = found(foreign)
    repro_run.only(report, "template_or_tokenizer")
    assert {difference.of for difference in report.differences} == {"template_or_tokenizer"}


def test_the_end_of_turn_lost(found: Found, results: Path, demo_model: Path) -> None:
    endless = repro_causes.with_base_eos(demo_model, results / "eos")
    report = found(
        endless, request=repro_run.request(QUESTION, max_tokens=16), recognise={"finish_reason": "length"}
    )  # fmt: skip
    repro_run.only(report, "eos_or_configuration")


def test_a_temperature_that_no_weights_stand(found: Found, w4a16: Path) -> None:
    report = found(w4a16, request=repro_run.request(QUESTION, temperature=2.0, max_tokens=8), recognise=NOT_PARIS)
    repro_run.only(report, "sampling")


def test_a_kernel_that_ends_its_loop_early(found: Found, w4a16: Path) -> None:
    report = found(
        w4a16, repro_bad_kernel.NAME, request=repro_run.request(QUESTION, max_tokens=8), recognise=NOT_PARIS,
        reference={"engine": ENGINE},
    )  # fmt: skip
    repro_run.only(report, "kernel_or_engine", confidence="medium")  # all tries are one greedy answer


def test_a_quantized_model_with_nothing_wrong_is_not_blamed(found: Found, w4a16: Path) -> None:
    report = found(w4a16, frequency={"failures": 9, "tries": 10})
    assert report.attribution.cause == "not_reproduced"
    assert report.minimised is None
