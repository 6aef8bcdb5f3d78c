"""`qgate run` that ends while a server is loading: by Ctrl-C or killed, no process and no GPU memory stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from qgate.errors import ExitCode
from qgate.ports import Tool
from tests.gpu.serving import GPUS, SMALL, gpu_holders, wait_for
from tests.gpu.weights import Tensors, harmed
from tests.processes import is_alive

ROOT = Path(__file__).parents[2]
HEEDING = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("qgate", run_name="__main__", alter_sys=True)
"""
"""`python -m qgate` that heeds interrupts also where a shell's background job was told to ignore them."""


def write_recipe(folder: Path, tool: Tool, model: Path) -> Path:
    """A run of two plain checkpoints."""

    def other(tensors: Tensors) -> None:
        dtype, shape, data = tensors["model.norm.weight"]
        tensors["model.norm.weight"] = (dtype, shape, data[2:4] + data[2:])

    recipe = {
        "qgate": 1,
        "name": "interrupted",
        "model": {"path": str(model)},
        "variants": {"other": {"checkpoint": {"path": str(harmed(model, folder / "other", other))}}},
        "engine": {"name": "vllm", "env": str(tool.python), "options": SMALL},
        "evalsets": [{"name": "instruction@1", "limit": 8}],
        "sampling": {"greedy": {"temperature": 0, "max_tokens": 16, "seeds": [0]}},
        "tiers": {
            "chat": {"default": "other", "allow": ["other"], "criteria": [{"metric": "score_loss", "margin": 0.1}]}
        },
    }
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    return path


@pytest.fixture
def run(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`qgate run` in a process of its own, as a shell starts it."""
    recipe = write_recipe(tmp_path, vllm_tool, demo_model)
    argv = [sys.executable, "-c", HEEDING, "run", str(recipe), "--results", str(tmp_path / "results")]
    with (tmp_path / "run.log").open("wb") as log:
        child = subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        yield child
        child.kill()
        child.wait()


def is_loading(run: subprocess.Popen[bytes], folder: Path) -> bool:
    """Whether its server is past its imports: it holds the GPU, or says that it is loading the model."""
    assert run.poll() is None, (folder / "run.log").read_text()
    if GPUS:
        return bool({child.pid for child in descendants(run)} & gpu_holders())
    logs = (folder / "results").rglob("*.log")
    return any("Starting to load model" in log.read_text(errors="replace") for log in logs)


def descendants(run: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(run.pid).children(recursive=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_nothing_is_left_of_a_run_that_ends_while_loading(
    tmp_path: Path, run: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    wait_for(lambda: is_loading(run, tmp_path), 180, "a server that is loading")
    children = descendants(run)
    assert children
    os.kill(run.pid, number)
    began = time.monotonic()
    code = run.wait(60)
    wait_for(lambda: not any(is_alive(child) for child in children), 20, "the end of all that the run started")
    assert time.monotonic() - began < 40
    assert code == (ExitCode.INTERRUPTED if number != signal.SIGKILL else -signal.SIGKILL)
    assert not {child.pid for child in children} & gpu_holders()
    if number != signal.SIGKILL:
        assert "interrupted" in (tmp_path / "run.log").read_text().lower()
