"""Memory that scoring takes: within its budget, and vLLM's own step is left alone wherever that fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.engines.vllm_memory import (
    BYTES_PER_LOGIT,
    CPU_BUDGET_BYTES,
    FEWEST_STEP_TOKENS,
    budget_bytes,
    default_step_tokens,
    gpu_memory_bytes,
    score_cost_bytes,
    step_tokens,
)

H200 = {"name": "NVIDIA H200", "memory.total": "143771 MiB", "driver_version": "580.1"}
A100 = {"name": "NVIDIA A100-SXM4-80GB", "memory.total": "81920 MiB", "driver_version": "580.1"}
L4 = {"name": "NVIDIA L4", "memory.total": "23034 MiB", "driver_version": "580.1"}


def test_memory_is_read_as_nvidia_smi_writes_it() -> None:
    assert gpu_memory_bytes(L4) == 23_034 << 20
    assert gpu_memory_bytes(None) is None
    assert gpu_memory_bytes({"memory.total": "[N/A]"}) is None


def test_the_budget_is_the_recipes_or_a_tenth_of_the_gpu() -> None:
    assert budget_bytes(5, H200) == 5
    assert budget_bytes(None, L4) == (23_034 << 20) // 10
    assert budget_bytes(None, None) == CPU_BUDGET_BYTES


@pytest.mark.parametrize(("gpu", "step"), [(H200, 8192), (A100, 2048), (L4, 2048), (None, 2048)])
def test_the_default_step_is_vllms(gpu: dict[str, str] | None, step: int) -> None:
    assert default_step_tokens(gpu) == step


@pytest.mark.parametrize(
    ("vocab_size", "gpu", "step"),
    [(49_152, H200, None), (152_064, H200, None), (49_152, L4, None), (152_064, L4, 1280)],
)
def test_the_step_is_cut_only_where_it_must_be(vocab_size: int, gpu: dict[str, str], step: int | None) -> None:
    assert step_tokens(vocab_size, budget_bytes(None, gpu), gpu) == step


@given(vocab_size=st.integers(1, 300_000), budget=st.integers(4 << 30, 64 << 30), positions=st.integers(1, 200_000))
def test_one_request_never_takes_more_than_the_budget(vocab_size: int, budget: int, positions: int) -> None:
    step = step_tokens(vocab_size, budget, H200) or default_step_tokens(H200)
    assert step >= FEWEST_STEP_TOKENS
    assert score_cost_bytes(positions, vocab_size, step) <= budget
    assert score_cost_bytes(1, vocab_size, step) == vocab_size * BYTES_PER_LOGIT
