from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from qgate.commands.scan import scan
from qgate.errors import ExitCode, UserError

GOOD = '{"id": "good", "text": "It boils at 100 degrees.", "finish_reason": "stop"}\n'
LOOP = json.dumps({"id": "loop", "text": "Fine. " + "Please keep it. " * 20, "finish_reason": "length"}) + "\n"
BROKEN = '{"id": "broken", "text": "half \\ud83d of it", "finish_reason": "stop"}\n'


def run(tmp_path: Path, content: str) -> ExitCode:
    path = tmp_path / "answers.jsonl"
    path.write_text(content, encoding="utf-8")
    return scan(argparse.Namespace(file=str(path)))


def test_good_answers_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, GOOD) is ExitCode.PASS
    out, err = capsys.readouterr()
    assert json.loads(out) == {"id": "good", "defects": []}
    assert err == "0 of 1 answers have defects\n"


def test_a_defect_fails_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, GOOD + LOOP) is ExitCode.FAIL
    out, err = capsys.readouterr()
    (defect,) = json.loads(out.splitlines()[1])["defects"]
    assert defect["name"] == "repetition_loop"
    assert defect["start"] == len("Fine. ")
    assert "'Please keep it. ' × 20" in defect["detail"]
    assert err == "1 of 2 answers have defects: repetition_loop 1\n"


def test_broken_characters_do_not_break_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, BROKEN) is ExitCode.FAIL
    out, _ = capsys.readouterr()
    assert out.isascii() and json.loads(out)["defects"][0]["name"] == "mojibake"


def test_unreadable_lines_are_named_and_never_a_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, GOOD + "nonsense\n") is ExitCode.USER_ERROR
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err.startswith("line 2 is not JSON") and err.endswith("; 1 line could not be read\n")
    assert run(tmp_path, "nonsense\n" + LOOP) is ExitCode.FAIL


def test_nothing_readable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        run(tmp_path, "")


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(LOOP.encode())))
    assert scan(argparse.Namespace(file="-")) is ExitCode.FAIL
    assert json.loads(capsys.readouterr().out)["id"] == "loop"
