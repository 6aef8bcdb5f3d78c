"""What tensor and pipeline parallelism cannot split, told before anything starts."""

from __future__ import annotations

import pytest

from qgate.sizing.model import packed
from qgate.sizing.split import faults, fitting
from tests.unit.sizing import models
from tests.unit.sizing.models import model

QWEN_0_5B = models.QWEN_2_5_7B | {
    "hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14, "num_hidden_layers": 24,
    "num_key_value_heads": 2, "vocab_size": 151_936,
}  # fmt: skip


def test_a_group_that_is_cut_is_told_with_the_arithmetic() -> None:
    grouped = model(QWEN_0_5B, models.llama_like(QWEN_0_5B), group_size=128)
    (only,) = faults(grouped, 2)
    assert only == (
        "tensor_parallel_size 2 cuts through groups of 128: 896/2 = 448 columns of model.layers.0.self_attn.o_proj on "
        "each GPU are no multiple of 128"
    )
    assert faults(model(QWEN_0_5B, models.llama_like(QWEN_0_5B), group_size=64), 2) == ()
    assert faults(model(QWEN_0_5B, models.llama_like(QWEN_0_5B)), 2) == ()


@pytest.mark.parametrize(("size", "words"), [(3, "32 attention heads"), (5, "8 heads of keys"), (3, "vocabulary of")])
def test_heads_and_vocabulary_must_divide(size: int, words: str) -> None:
    found = faults(model(models.MISTRAL_7B_V01, models.llama_like(models.MISTRAL_7B_V01)), size)
    assert any(words in fault for fault in found)


def test_fewer_key_heads_than_gpus_are_repeated() -> None:
    llama = model(models.LLAMA_3_8B, models.llama_like(models.LLAMA_3_8B), group_size=128)
    assert faults(llama, 16) == ()
    assert fitting(llama) == (1, 2, 4, 8, 16)


def test_mla_has_no_key_heads_to_divide() -> None:
    assert faults(model(models.DEEPSEEK_V2_LITE, {}), 16) == ()


def test_a_stage_without_a_layer() -> None:
    llama = model(models.LLAMA_3_8B, {})
    assert faults(llama, 1, 4) == ()
    assert faults(llama, 1, 33) == ("pipeline_parallel_size 33 is more than the 32 layers",)


def test_the_size_of_what_a_quantizer_will_make() -> None:
    assert packed((4096, 4096), 8, None).size_bytes == 4096 * 4096 + 4096 * 5 // 2
    assert packed((4096, 4096), 4, 128).size_bytes == 4096 * 4096 // 2 + 4096 * 32 * 5 // 2
