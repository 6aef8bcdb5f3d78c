"""`qgate run` in CI: exit codes, and what a GitHub step is told."""

import re
from pathlib import Path

import pytest

from qgate.cli import main
from qgate.errors import ExitCode
from tests.unit.test_pipeline import made

HARM = {"metric": "score_loss", "margin": 0.1}
TIERS = {
    "passes": {"default": "good", "allow": ["good"], "engines": ["fake"], "criteria": [HARM]},
    "unsettled": {"default": "good", "allow": ["good"], "engines": ["vllm"], "criteria": [HARM]},
    "fails": {
        "default": "bad", "allow": ["bad"], "engines": ["fake"],
        "criteria": [{"metric": "defect_increase", "margin": 0.1}],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("tiers", "fail_on", "expected"),
    [
        (["passes"], "inconclusive", ExitCode.PASS),
        (["passes", "unsettled"], "inconclusive", ExitCode.INCONCLUSIVE),
        (["passes", "unsettled"], "fail", ExitCode.PASS),
        (["unsettled", "fails"], "fail", ExitCode.FAIL),
        (["passes", "fails"], "inconclusive", ExitCode.FAIL),
    ],
)
def test_fail_on(tmp_path: Path, tiers: list[str], fail_on: str, expected: ExitCode) -> None:
    path = made(tmp_path, tiers={name: TIERS[name] for name in tiers})
    words = ["run", str(path), "--results", str(tmp_path / "results"), "--quiet", "--fail-on", fail_on]
    assert main(words) == expected


def test_what_could_not_run_stops_a_pipeline_always(tmp_path: Path) -> None:
    path = made(tmp_path, engine={"name": "fake", "options": {"refuse_start": True}})
    words = ["run", str(path), "--results", str(tmp_path / "results"), "--quiet", "--fail-on", "fail"]
    assert main(words) == ExitCode.INCONCLUSIVE


def test_a_github_step_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary, output = tmp_path / "summary", tmp_path / "output"
    summary.write_text("before\n", encoding="utf-8")
    for name, value in {"ACTIONS": "true", "STEP_SUMMARY": summary, "OUTPUT": output}.items():
        monkeypatch.setenv(f"GITHUB_{name}", str(value))
    path = made(tmp_path, tiers={name: TIERS[name] for name in ("passes", "fails")})
    assert main(["run", str(path), "--results", str(tmp_path / "results"), "--quiet"]) == ExitCode.FAIL
    said = capsys.readouterr().out
    # what models wrote is where the runner looks for no command
    quoted = re.fullmatch(r"::stop-commands::(\w{32})\n(.*)\n::\1::\n(.*)", said, re.DOTALL)
    assert quoted is not None
    assert "The worst answers" in quoted[2]
    assert "::notice title=qgate PASS%2C passes::" in quoted[3]
    assert "\n::error title=qgate FAIL%2C fails::" in quoted[3]
    assert summary.read_text(encoding="utf-8").startswith("before\n## qgate: small")
    outputs = dict(line.split("=", 1) for line in output.read_text(encoding="utf-8").splitlines())
    assert outputs.keys() == {"run", "folder", "evidence"}
    assert outputs["run"] == Path(outputs["folder"]).name
    assert Path(outputs["evidence"]).parent == Path(outputs["folder"])
    assert Path(outputs["evidence"]).is_file()


def test_nobody_else_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made(tmp_path, tiers={"passes": TIERS["passes"]})
    assert main(["run", str(path), "--results", str(tmp_path / "results"), "--quiet"]) == ExitCode.PASS
    assert "::" not in capsys.readouterr().out


@pytest.fixture(autouse=True)
def _no_github(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACTIONS", "STEP_SUMMARY", "OUTPUT"):
        monkeypatch.delenv(f"GITHUB_{name}", raising=False)
