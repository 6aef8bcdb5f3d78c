"""Starts that cannot work: each ends soon, in one message that says what was wrong and what to do, and leaves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qgate.engines.vllm import ENGINE
from qgate.errors import EngineError, StartError
from qgate.ports import ServeJob, Tool
from tests.gpu.serving import GIB, family, serve_job
from tests.gpu.weights import FILE, Tensors, harmed

DOWN = "model.layers.3.mlp.down_proj.weight"
NORM = "model.layers.3.input_layernorm.weight"


@pytest.fixture(autouse=True)
def _leaves_nothing() -> Iterator[None]:
    before = family()
    yield
    assert not family() - before


def refusal(job: ServeJob) -> str:
    """All that is said when the server does not start."""
    with pytest.raises(StartError) as caught, ENGINE.open(job):
        pass
    return f"{caught.value.message}\nfix: {caught.value.advice}"


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("options", "knob"),
    [
        ({"kv_cache_memory_bytes": 5000 * GIB}, "kv_cache_memory_bytes"),
        ({"kv_cache_memory_bytes": None, "gpu_memory_utilization": 1.0}, "gpu_memory_utilization"),
    ],
    ids=["a KV cache larger than the GPU", "a share that is not free"],
)
def test_memory_that_is_not_there_is_told_with_numbers_and_the_knob(
    tmp_path: Path, vllm_tool: Tool, demo_model: Path, options: dict[str, Any], knob: str
) -> None:
    said = refusal(serve_job(tmp_path / "w", vllm_tool, demo_model, options=options))
    summary = said.partition("\n  log:")[0].partition("\n  | ")[0]
    sizes = re.findall(r"[\d,.]+ ?[GT]i?B", summary)
    assert len(sizes) >= 2, f"what was needed and what was free: {summary}"
    assert knob in said.partition("fix: ")[2]


def test_a_missing_tensor_is_named(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    """A norm: of a linear layer vLLM (0.26, 0.32) does not miss the weight and serves what lay in memory."""

    def drop(tensors: Tensors) -> None:
        del tensors[NORM]

    said = refusal(serve_job(tmp_path / "w", vllm_tool, harmed(demo_model, tmp_path / "model", drop)))
    assert NORM in said.partition("\n  | ")[0]


def test_a_tensor_of_another_shape_is_named(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    def transpose(tensors: Tensors) -> None:
        dtype, (rows, columns), data = tensors[DOWN]
        tensors[DOWN] = (dtype, [columns, rows], data)

    said = refusal(serve_job(tmp_path / "w", vllm_tool, harmed(demo_model, tmp_path / "model", transpose)))
    summary = said.partition("\n  | ")[0]
    assert DOWN.removesuffix(".weight") in summary
    assert re.search(r"576\D+1536", summary)


def test_a_tensor_that_the_model_has_not_is_named(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    def misname(tensors: Tensors) -> None:
        tensors["model.layers.3.mlp.sideways_proj.weight"] = tensors.pop(DOWN)

    said = refusal(serve_job(tmp_path / "w", vllm_tool, harmed(demo_model, tmp_path / "model", misname)))
    assert "layers.3.mlp." in said.partition("\n  | ")[0]


def test_a_weight_file_that_was_cut_is_told(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    model = harmed(demo_model, tmp_path / "model", lambda tensors: None)
    whole = (model / FILE).stat().st_size
    with (model / FILE).open("r+b") as stream:
        stream.truncate(whole - 1_000_000)
    with pytest.raises(EngineError) as caught, ENGINE.open(serve_job(tmp_path / "w", vllm_tool, model)):
        pass
    assert re.search(r"weight file|truncat|damaged|model\.safetensors", caught.value.message.partition("\n  | ")[0])
