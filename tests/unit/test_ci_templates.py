"""The action, the job template and docs/ci.md: they parse, hang together, and call qgate as it is."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from qgate import pipeline
from qgate.arguments import parser
from qgate.io import recipe
from qgate.rooms.tasks import ASKED, SCORED
from tests.unit.promoted import key_pair
from tests.unit.test_pipeline import Watcher, made

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
GITLAB: dict[str, Any] = yaml.safe_load((ROOT / "ci" / "qgate.gitlab-ci.yml").read_text(encoding="utf-8"))
DOCS = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
EXAMPLES: list[str] = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)


def commands() -> Iterator[str]:
    """Every qgate command line of the three files."""
    scripts = [step.get("run", "") for step in STEPS]
    scripts += [line for key in ("before_script", "script") for line in GITLAB[".qgate"][key]]
    scripts += [line.removeprefix("$ ") for line in DOCS.splitlines()]
    for line in "\n".join(scripts).splitlines():
        found = re.search(r"(?:^|then )\s*(qgate [a-z].*?)(?: \|\| .*|; fi)?$", line)
        if found:
            yield found[1]


def test_every_command_line_is_one_that_qgate_takes() -> None:
    found = list(commands())
    assert {line.split()[1] for line in found} >= {"run", "env", "sign", "verify", "promote", "compare"}
    for line in found:
        parser().parse_args(shlex.split(re.sub(r'"\$(QGATE_)?FAIL_ON"', "fail", line))[1:])


def test_the_action_hangs_together() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    ids = {step["id"] for step in STEPS if "id" in step}
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == ACTION["inputs"].keys()
    assert set(re.findall(r"steps\.([a-z]+)\.", text)) <= ids
    for step in STEPS:
        assert ("run" in step) != ("uses" in step)
        assert step.get("shell") == ("bash" if "run" in step else None)
        assert "${{" not in step.get("run", ""), "an input that is put into a script is a script"


def test_the_examples_use_what_there_is() -> None:
    github, gitlab = (yaml.safe_load(text) for text in EXAMPLES)
    (step,) = [step for step in github["jobs"]["gate"]["steps"] if step.get("id") == "gate"]
    assert step["with"].keys() <= ACTION["inputs"].keys()
    assert gitlab["gate"]["extends"] in GITLAB
    known = {*GITLAB[".qgate"]["variables"], "QGATE_HOME", "GIT_CLEAN_FLAGS"}
    assert gitlab["gate"]["variables"].keys() <= known


def lint(*words: str | Path) -> None:
    """Run a linter of the environment that the tests run in."""
    tool, *rest = map(str, words)
    done = subprocess.run([Path(sys.executable).parent / tool, *rest], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_github_and_gitlab_take_them(tmp_path: Path) -> None:
    """By their own schemas."""
    workflow, job = (tmp_path / f"{name}.yml" for name in ("workflow", "job"))
    workflow.write_text(EXAMPLES[0], encoding="utf-8")
    job.write_text(EXAMPLES[1], encoding="utf-8")
    lint("check-jsonschema", "--builtin-schema", "vendor.github-actions", ROOT / "action.yml")
    lint("check-jsonschema", "--builtin-schema", "vendor.github-workflows", workflow)
    lint("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", ROOT / "ci" / "qgate.gitlab-ci.yml", job)


def test_nothing_to_inject_into_and_nothing_unpinned(tmp_path: Path) -> None:
    """The action and the example, by zizmor."""
    workflow = tmp_path / ".github" / "workflows" / "gate.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(EXAMPLES[0].replace("COMMIT_SHA", "0" * 40), encoding="utf-8")
    shutil.copy(ROOT / "action.yml", tmp_path)
    lint("zizmor", "--offline", "--no-progress", "--min-severity", "medium", tmp_path / "action.yml", workflow)


@pytest.fixture
def judged(tmp_path: Path) -> dict[str, str]:
    """The environment of a step, in a workspace with a recipe whose default fails."""
    made(tmp_path, tiers={"chat": {
        "default": "bad", "allow": ["bad"], "engines": ["fake"], "criteria": [{"metric": "defect_increase", "margin": 0.1}],
    }})  # fmt: skip
    variables = {"GITHUB_ACTIONS": "true", "RECIPE": "recipe.yaml", "RESULTS": "results", "FAIL_ON": "inconclusive"}
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, **variables, **files, "PATH": path, "RUNNER_TEMP": str(tmp_path)}


def step(name: str, folder: Path, environment: dict[str, str]) -> int:
    """Run a step's script as the runner does."""
    (script,) = [step["run"] for step in STEPS if step["name"] == name]
    (folder / "script.sh").write_text(script, encoding="utf-8")
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(folder / "script.sh")]
    return subprocess.run(words, cwd=folder, env=environment, check=False, capture_output=True).returncode


def outputs(folder: Path) -> dict[str, str]:
    lines = (folder / "GITHUB_OUTPUT").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_the_steps_judge_sign_and_end_red(tmp_path: Path, judged: dict[str, str]) -> None:
    assert step("Judge", tmp_path, judged) == 0  # the reports are kept first
    found = outputs(tmp_path)
    assert found["exit-code"] == "1"
    assert (tmp_path / found["folder"] / "comment.md").is_file()
    private, _ = key_pair(tmp_path)
    assert step("Sign the evidence", tmp_path, {
        **judged, "EVIDENCE": found["evidence"], "SIGN_KEY": private.read_text(encoding="utf-8"),
    }) == 0  # fmt: skip
    signed = tmp_path / outputs(tmp_path)["evidence"]
    assert signed.name == "evidence.intoto.jsonl"
    assert signed.is_file()
    nobody = {**judged, "EVIDENCE": found["evidence"], "SIGN_KEY": "", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": ""}
    assert step("Sign the evidence", tmp_path, nobody) != 0  # keyless, in a job that may not ask who it is
    assert step("Verdict", tmp_path, {**judged, "CODE": "1"}) == 1


def test_a_second_pull_request_does_not_generate_the_baseline_again(tmp_path: Path) -> None:
    """What the templates keep is enough: answers and token scores, no checkpoint."""
    path = made(tmp_path)
    first = pipeline.run(recipe.load(path), tmp_path / "results", Watcher())
    restored, kept = [step for step in STEPS if step.get("uses", "").startswith("actions/cache/")]
    assert restored["with"]["path"] == kept["with"]["path"]
    names = [line.rpartition("/")[2] for line in kept["with"]["path"].splitlines()]
    assert [line.strip("/").rpartition("/")[2] for line in GITLAB[".qgate"]["cache"]["paths"]] == names
    for kind, is_kept in (
        ("generations", True),
        ("token_scores", True),
        (ASKED, True),
        (SCORED, True),
        ("checkpoints", False),
    ):
        assert any(fnmatch(kind, name) for name in names) is is_kept
    for folder in (tmp_path / "results" / "objects").iterdir():
        if any(fnmatch(folder.name, name) for name in names):
            shutil.copytree(folder, tmp_path / "fresh" / "objects" / folder.name)
    weights = tmp_path / "good" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x07")
    second = pipeline.run(recipe.load(path), tmp_path / "fresh", Watcher())
    own = [arm for arm in second.run.arms if arm.variant == "baseline" and arm.step == "generate"]
    assert own
    assert all(arm.cached for arm in own)
    assert {arm.variant for arm in second.run.arms if not arm.cached and arm.step == "generate"} == {"good"}
    assert len(first.run.arms) == len(second.run.arms)
