"""`qgate plan`: what a run would do, and the memory of its servers where the engine can tell it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qgate import cli
from qgate.engines.vllm import ENGINE
from qgate.errors import ExitCode
from qgate.io import envs
from qgate.ports import NO_TOOL
from qgate.rooms import prepare
from tests.unit.recipes import small, write, write_evalset
from tests.unit.sizing.models import write_checkpoint
from tests.unit.test_pipeline import item


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(prepare, "load_engine", lambda name: ENGINE)
    monkeypatch.setattr(envs, "resolve", lambda spec: NO_TOOL)
    monkeypatch.setattr(type(ENGINE), "device", lambda self, tool: "a CPU")
    monkeypatch.setattr(type(ENGINE), "devices", lambda self, tool: ())
    for name in ("model", "w8a8"):
        write_checkpoint(tmp_path / name)
    clean = [item(number) for number in range(10)]
    twin = json.loads(item(10)) | {"twin_of": "crate-000"}
    write_evalset(tmp_path, [*clean, json.dumps(twin)])
    return write(tmp_path, small(engine={"name": "vllm", "parallel": "auto"}))


def plan(recipe: Path, *words: str) -> int:
    return cli.main(["plan", str(recipe), "--results", str(recipe.parent / "results"), *words])


def test_servers_are_planned_for_another_machine(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(recipe, "--gpu-memory", "80GiB", "--gpus", "2") == ExitCode.PASS
    said = capsys.readouterr().out
    assert "as many servers as fit at a time" in said.replace("\n", " ")
    assert "GPU 0" in said
    assert "GPU 1" in said
    assert "does not fit" not in said


def test_a_gpu_that_is_too_small_is_told(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(recipe, "--gpu-memory", "1GiB") == ExitCode.PASS
    said = capsys.readouterr().out
    assert "baseline does not fit: it needs" in said
    assert "nowhere" in said


def test_without_a_gpu_it_says_so(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(recipe) == ExitCode.PASS
    assert "no GPU answers here" in capsys.readouterr().out


def test_without_the_environment_it_tells_what_it_can_and_ends_as_a_run_would(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(recipe, "--gpu-memory", "80GiB") == ExitCode.PASS
    built = capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setenv("QGATE_HOME", str(recipe.parent / "nothing-built"))
    assert plan(recipe, "--gpu-memory", "80GiB") == ExitCode.INCONCLUSIVE
    said = capsys.readouterr().out
    assert "the environment 'vllm' is not built: qgate env build vllm" in said.replace("\n", " ")
    assert said.partition("engine vllm")[0] == built.partition("engine vllm")[0], "the same steps"
    assert said.partition("GiB a GPU")[2].startswith(built.partition("GiB a GPU")[2]), "the same memory"


@pytest.mark.parametrize("algorithm", ["rtn", "gptq"])
def test_calibration_texts_that_are_not_there_are_told_before_the_model_is_fetched(
    recipe: Path, capsys: pytest.CaptureFixture[str], algorithm: str
) -> None:
    made = {"quantizer": "llmcompressor", "options": {"scheme": "W8A8", "algorithm": algorithm}}
    content = small(engine={"name": "vllm"}, variants={"w8a8": made | {"calibration": {"file": "nope.jsonl"}}})
    content["model"] = {"gguf": "model.gguf"}
    assert plan(write(recipe.parent, content)) == ExitCode.USER_ERROR
    said = capsys.readouterr().err
    assert "no calibration file at" in said
    assert "nope.jsonl" in said


def test_a_number_of_gpus_without_their_size_is_refused(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(recipe, "--gpus", "2") == ExitCode.USER_ERROR
    assert "say how large they are too" in capsys.readouterr().err
    assert plan(recipe, "--gpu-memory", "80GiB", "--gpus", "0") == ExitCode.USER_ERROR


def test_a_size_that_is_none_is_refused(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(recipe, "--gpu-memory", "large") == ExitCode.USER_ERROR
    assert "write it as 80GiB" in capsys.readouterr().err


def test_each_step_is_one_line_of_eighty_columns(
    recipe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    plan(recipe)
    table = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert len(table) > 5
    assert {line.split()[0] for line in table} <= {"step", "checkpoint", "generate", "score"}
    assert max(map(len, table)) <= 80
    assert {line.split("to do")[-1].strip() for line in table if line.startswith("score")} == {"1 pass", "11 answers"}


@pytest.mark.parametrize(
    ("metric", "max_items", "said"),
    [
        ("kl_p95", None, "kl_p95 takes 59 items to pass at the least, and at most 10 are judged"),
        ("kl_p99", 4, "kl_p99 takes 299 items to pass at the least, and at most 4 are judged"),
        ("defect_rate", None, "defect_rate takes 29 items to pass at the least, and at most 10 are judged"),
        ("score_loss", None, None),
    ],
)
def test_a_criterion_that_so_few_items_cannot_pass_is_told(
    recipe: Path, metric: str, max_items: int | None, said: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    tier = {"default": "w8a8", "allow": ["w8a8"], "criteria": [{"metric": metric, "margin": 0.1}]}
    asked = small(engine={"name": "vllm"}, tiers={"chat": tier}, token_evidence={"max_items": max_items})
    assert plan(write(recipe.parent, asked)) == ExitCode.PASS
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown if said is not None else "items to pass at the least" not in shown
