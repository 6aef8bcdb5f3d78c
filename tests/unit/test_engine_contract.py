"""The contract of an engine, for every engine that needs no model: the fake one, and transformers over a stub worker.

The others pass the same contract in tests/integration, where their tools are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from qgate.engines import transformers
from qgate.ports import Engine, ServeJob, Session, Tool, load_engine
from tests import engine_contract

STUB = Path(__file__).parent / "engines" / "transformers_stub.py"
NAMES = sorted(point.name for point in entry_points(group="qgate.engines"))
WITHOUT_MODEL = ("fake", "transformers")

Open = Callable[[], AbstractContextManager[Session]]


@pytest.fixture(params=NAMES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return load_engine(request.param)


def job(folder: Path, engine: Engine) -> ServeJob:
    return ServeJob(
        checkpoint=folder, name="baseline", dtype="float16", options=engine.options(),
        tool=Tool(Path(sys.executable), "none"), concurrency=4, request_timeout_s=60.0, stall_timeout_s=60.0,
        repeatable=False, max_model_len=None, log=folder / "serve.log", work=folder,
    )  # fmt: skip


@pytest.fixture(params=WITHOUT_MODEL)
def opened(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    monkeypatch.setattr(transformers, "ENTRY", STUB)
    engine = load_engine(request.param)
    return lambda: engine.open(job(tmp_path, engine))


def test_it_is_found_under_its_own_name(engine: Engine) -> None:
    assert load_engine(engine.name) is engine


def test_its_options_are_closed_frozen_and_described(engine: Engine) -> None:
    config = engine.options.model_config
    assert config.get("extra") == "forbid"
    assert config.get("frozen")
    assert all(field.description for field in engine.options.model_fields.values())


def test_its_workers_are_scripts_that_import_nothing_of_qgate(engine: Engine) -> None:
    for worker in engine.workers:
        text = worker.read_text(encoding="utf-8")
        compile(text, str(worker), "exec")
        assert "import qgate" not in text
        assert "from qgate" not in text


def test_it_keeps_the_contract(opened: Open) -> None:
    with opened() as session:
        engine_contract.one_answer_per_request(session)
        engine_contract.nothing_asked_nothing_answered(session)
        engine_contract.same_seed_same_text(session)
        engine_contract.facts_say_where_numbers_come_from(session, session.facts.engine)


def test_the_fake_engine_scores_texts(tmp_path: Path) -> None:
    fake = load_engine("fake")
    with fake.open(job(tmp_path, fake)) as session:
        engine_contract.scores_fit_what_was_forced(session)
        engine_contract.a_text_is_scored_as_its_tokens(session)


def test_leaving_ends_every_process(opened: Open) -> None:
    engine_contract.leaving_ends_every_process(opened)
