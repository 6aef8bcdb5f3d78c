"""A view looks like its original with other files in it, and the original is never touched; a try log only grows."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from qgate.io import checkpoint
from qgate.io.try_log import TryLog
from qgate.io.view import read_files, view
from qgate.schemas.answers import Answer, EngineFacts
from tests.processes import PATIENCE_S
from tests.unit.tiny_checkpoint import write_checkpoint


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))


def test_a_view_has_the_other_files_and_links_to_the_rest(tmp_path: Path) -> None:
    original = checkpoint.read(write_checkpoint(tmp_path / "m"), "candidate")
    before = {path.name: path.read_bytes() for path in original.path.iterdir()}
    (folder := tmp_path / "view").mkdir()
    made = view(original, {"config.json": b'{"a": 1}', "tokenizer.json": None, "chat_template.jinja": b"t"}, folder)
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors", "chat_template.jinja"}
    assert (folder / "model.safetensors").is_symlink()
    assert (folder / "config.json").read_bytes() == b'{"a": 1}'
    assert {path.name: path.read_bytes() for path in original.path.iterdir()} == before
    assert made.digest != original.digest
    assert set(made.files) == {"config.json", "model.safetensors", "chat_template.jinja"}
    assert made.files["model.safetensors"] == original.files["model.safetensors"]


def test_a_view_without_a_change_is_the_same_bytes(tmp_path: Path) -> None:
    original = checkpoint.read(write_checkpoint(tmp_path / "m"), "candidate")
    (folder := tmp_path / "view").mkdir()
    assert view(original, {}, folder).digest == original.digest
    assert checkpoint.read(folder, "candidate").digest == original.digest


def test_only_files_that_are_there_are_read(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "m")
    assert set(read_files(tmp_path / "m", ("tokenizer.json", "none.json"))) == {"tokenizer.json"}


def answer(name: str, text: str) -> Answer:
    return Answer(id=name, text=text, status="ok", latency_s=0.1)


def test_a_log_keeps_what_came_and_the_later_of_two_counts(tmp_path: Path) -> None:
    with TryLog(tmp_path / "log") as log:
        assert log.facts() is None
        for name, text in (("a", "1"), ("b", "2"), ("a", "3")):
            log.add(answer(name, text))
        log.save_facts(EngineFacts(engine="fake", version="1", device="none"))
    with (tmp_path / "log" / "answers.jsonl").open("ab") as stream:
        stream.write(b'{"id": "torn')
    with TryLog(tmp_path / "log") as log:
        assert {name: each.text for name, each in log.answers.items()} == {"a": "3", "b": "2"}
        assert log.facts() is not None
        log.add(answer("c", "4"))
        log.add(Answer(id="d", text=None, status="error", error="HTTP 500", latency_s=0.1))
        assert "d" in log.answers
    with TryLog(tmp_path / "log") as log:
        assert set(log.answers) == {"a", "b", "c"}


def test_a_log_is_one_processs_and_the_next_is_told_to_wait(tmp_path: Path) -> None:
    waited = threading.Event()

    def later() -> None:
        with TryLog(tmp_path / "log", waited.set) as log:
            log.add(answer("b", "2"))

    with TryLog(tmp_path / "log") as log:
        thread = threading.Thread(target=later)
        thread.start()
        assert waited.wait(PATIENCE_S)
        log.add(answer("a", "1"))
    thread.join()
    with TryLog(tmp_path / "log") as log:
        assert set(log.answers) == {"a", "b"}
