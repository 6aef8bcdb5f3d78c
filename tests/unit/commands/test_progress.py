"""What a log shows of a long run."""

import pytest

from qgate.commands import progress


def test_a_line_tells_how_far_and_in_which_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    with progress.watching(quiet=False) as watcher, watcher.task("w8a8: quantizing", 100) as task:
        task.detail("quantizing")
        task.advance(40)
        task.detail("saving")
    begun, *lines, ended = capsys.readouterr().err.splitlines()
    assert begun == "→ w8a8: quantizing (100 to do)"
    assert lines == [
        "  w8a8: quantizing: 0 of 100",
        "  w8a8: quantizing: 40 of 100",
        "  w8a8: quantizing: 40 of 100, saving",
    ]
    assert ended.startswith("✓ w8a8: quantizing ")


def test_a_log_is_not_told_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.watching(quiet=False) as watcher, watcher.task("bad: instruction", 1000) as task:
        for _ in range(1000):
            task.advance()
    assert len(capsys.readouterr().err.splitlines()) == 2
