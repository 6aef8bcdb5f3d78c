"""`qgate verify` and `qgate sign` as they are called: exit codes and words."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from qgate.cli import main
from qgate.commands.verify import duration
from qgate.errors import ExitCode, UserError
from qgate.judge.promotion import span
from tests.unit.promoted import Promoted, key_pair


def call(run: Promoted, *more: str | Path, checkpoint: Path | None = None) -> int:
    words = ["verify", checkpoint or run.good, "--evidence", run.evidence, "--tier", "chat", *more]
    return main([str(word) for word in words])


def test_it_says_what_the_checkpoint_is(promoted: Promoted, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(promoted, "--max-age", "1d", "--evalset", "tiny@1") == ExitCode.PASS
    said = capsys.readouterr().out
    assert "is good (W8A8), byte for byte as judged" in said
    assert "passed for chat in run small-" in said
    assert "UNSIGNED: anybody may have edited the evidence" in said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.7, "1 second"), (8, "8 seconds"), (60, "1 minute"), (7 * 3600, "7 hours"), (3e6, "34 days")],
)
def test_an_age_is_said_in_the_largest_unit_that_it_fills(seconds: float, said: str) -> None:
    assert span(timedelta(seconds=seconds)) == said


def test_a_tier_named_twice_is_one(promoted: Promoted, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(promoted, "--tier", "chat") == ExitCode.PASS
    assert "passed for chat in run small-" in capsys.readouterr().out


def test_a_refusal_fails(promoted: Promoted, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(promoted, "--tier", "batch") == ExitCode.FAIL
    said = capsys.readouterr()
    assert said.out == ""
    assert "good may not be promoted:\n  - the tier 'batch' does not allow good" in said.err


def test_evidence_cannot_forge_what_is_said_of_it(promoted: Promoted, capsys: pytest.CaptureFixture[str]) -> None:
    forged = "x, 1 hour ago\n  evidence: signed with abc…\x1b[8m"
    promoted.edit(lambda value: value["predicate"].update(run_id=forged))
    assert call(promoted) == ExitCode.PASS
    said = capsys.readouterr().out
    assert [line[:12] for line in said.splitlines()[1:]] == ["  passed for", "  evidence: "]
    assert "\x1b" not in said
    assert "UNSIGNED" in said.splitlines()[2]


def test_unreadable_evidence_is_the_callers_mistake(promoted: Promoted) -> None:
    promoted.evidence.write_text("")
    assert call(promoted) == ExitCode.USER_ERROR


def test_sign_and_verify(promoted: Promoted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    private, public = key_pair(tmp_path)
    assert main(["sign", str(promoted.evidence), "--key", str(private)]) == ExitCode.PASS
    signed = tmp_path / "evidence.intoto.jsonl"
    assert f"{signed}: signed with " in capsys.readouterr().out
    assert call(promoted, "--key", public) == ExitCode.FAIL  # the bare statement is there still, and unsigned
    shutil.move(signed, promoted.evidence)
    assert call(promoted, "--key", public) == ExitCode.PASS
    assert "evidence: signed with " in capsys.readouterr().out


def test_nothing_that_is_read_or_judged_is_overwritten(promoted: Promoted, tmp_path: Path) -> None:
    private, _ = key_pair(tmp_path)
    assert main(["sign", str(promoted.evidence), "--key", str(private), "--out", str(private)]) == ExitCode.USER_ERROR
    assert b"PRIVATE" in private.read_bytes()
    words = ["promote", str(promoted.good), "--evidence", str(promoted.evidence), "--tier", "chat", "--out"]
    before = {path: path.read_bytes() for path in (promoted.evidence, *promoted.good.iterdir())}
    assert main([*words, str(promoted.evidence)]) == ExitCode.USER_ERROR
    for name in ("config.json", "policy.yaml"):
        assert main([*words, str(promoted.good / name)]) == ExitCode.USER_ERROR
    assert {path: path.read_bytes() for path in (promoted.evidence, *promoted.good.iterdir())} == before


@pytest.mark.parametrize(("text", "hours"), [("12h", 12), ("30d", 720), ("2w", 336)])
def test_lengths_of_time(text: str, hours: int) -> None:
    assert duration(text).total_seconds() == hours * 3600


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1.5d", "30 d", "1m", "9999999d"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(UserError):
        duration(text)


def test_an_identity_without_its_provider(promoted: Promoted, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(promoted, "--identity", "me@example.org") == ExitCode.USER_ERROR
    assert "--identity needs --issuer" in capsys.readouterr().err


def test_a_provider_without_an_identity(promoted: Promoted, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(promoted, "--issuer", "https://example.org") == ExitCode.USER_ERROR
    assert "go with --identity" in capsys.readouterr().err


def test_an_identity_is_asked_of_evidence_that_has_none(promoted: Promoted, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(promoted, "--identity", "me@example.org", "--issuer", "https://example.org") == ExitCode.FAIL
    assert "nobody's identity stands for it" in capsys.readouterr().err
