"""KV cache bytes of published models, each derived by hand from its config.json."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.sizing.cache import Layers, cache_shape
from tests.unit.sizing import models


@pytest.mark.parametrize(
    ("config", "token_bytes"),
    [
        # layers × 2 (keys, values) × kv heads × head size × 2 bytes
        (models.LLAMA_3_8B, 32 * 2 * 8 * 128 * 2),
        (models.QWEN_2_5_7B, 28 * 2 * 4 * 128 * 2),
        (models.MISTRAL_7B_V01, 32 * 2 * 8 * 128 * 2),
        # layers × (kv_lora_rank + qk_rope_head_dim) × 2 bytes: one vector, not one a head (DeepSeek-V2, 2405.04434, §2.1)
        (models.DEEPSEEK_V2_LITE, 27 * (512 + 64) * 2),
        # 16 GiB held 745,648 tokens on an H200 with vLLM 0.26: 23,040 bytes a token
        (models.SMOLLM2_135M, 23_040),
    ],
    ids=["llama-3-8b", "qwen2.5-7b", "mistral-7b", "deepseek-v2-lite", "smollm2-135m"],
)
def test_bytes_of_a_token(config: dict[str, object], token_bytes: int) -> None:
    assert cache_shape(config).token_bytes == token_bytes


def test_what_vllm_reported_for_16_gib() -> None:
    shape = cache_shape(models.SMOLLM2_135M)
    assert (16 << 30) // (16 * shape.token_bytes) * 16 == 745_648


def test_grouped_query_heads_are_split_and_then_repeated() -> None:
    whole = cache_shape(models.LLAMA_3_8B).token_bytes
    assert cache_shape(models.LLAMA_3_8B, tensor_parallel=4).token_bytes == whole // 4
    assert cache_shape(models.LLAMA_3_8B, tensor_parallel=16).token_bytes == whole // 8  # 8 heads, each on two GPUs


def test_multi_query_attention_has_one_head() -> None:
    falcon = {"hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32, "multi_query": True}
    assert cache_shape(falcon).token_bytes == 32 * 2 * 1 * 64 * 2


def test_the_latent_of_mla_is_on_every_gpu() -> None:
    whole = cache_shape(models.DEEPSEEK_V2_LITE).token_bytes
    assert cache_shape(models.DEEPSEEK_V2_LITE, tensor_parallel=8).token_bytes == whole


def test_fp8_takes_half_and_scales_of_each_head_are_counted() -> None:
    whole = cache_shape(models.LLAMA_3_8B).token_bytes
    assert cache_shape(models.LLAMA_3_8B, kv_dtype="fp8_e4m3").token_bytes == whole // 2
    per_head = cache_shape(models.LLAMA_3_8B, kv_dtype="fp8_per_token_head").token_bytes
    assert per_head == whole // 2 + 32 * 8 * 2 * 4


def test_a_sliding_window_bounds_a_sequence() -> None:
    shape = cache_shape(models.MISTRAL_7B_V01)
    assert shape.sequence_bytes(4096) == 4096 * shape.token_bytes
    assert shape.sequence_bytes(32_768) == (4096 + 16) * shape.token_bytes  # and the block that the window slides into


def test_a_window_keeps_what_is_in_flight_beside_it() -> None:
    shape = cache_shape(models.MISTRAL_7B_V01)
    assert shape.sequence_bytes(32_768, in_flight=8192) == (4096 + 8192 + 16) * shape.token_bytes
    assert shape.sequence_bytes(10_000, in_flight=8192) == 10_000 * shape.token_bytes
    assert shape.shortest_window == 4096


def test_layers_of_two_kinds_are_padded_to_equal_groups() -> None:
    gemma_3_27b = {
        "text_config": {
            "hidden_size": 5376, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128,
            "num_hidden_layers": 62, "sliding_window": 1024, "sliding_window_pattern": 6,
        }
    }  # fmt: skip
    shape = cache_shape(gemma_3_27b)
    # 10 of 62 layers see everything; the other 52 fill six groups of 10
    assert sorted(shape.layers, key=lambda kind: kind.num) == [Layers(10, None), Layers(60, 1024)]
    whole_blocks, window_blocks = 10 * 8192 // 16, 60 * (1024 // 16 + 1)
    assert shape.sequence_bytes(8192) == (whole_blocks + window_blocks) * 16 * shape.layer_bytes


def test_nearly_equal_kinds_are_padded_to_the_larger() -> None:
    kinds = ["sliding_attention"] * 12 + ["full_attention"] * 13
    config = models.LLAMA_3_8B | {"num_hidden_layers": 25, "layer_types": kinds, "sliding_window": 128}
    assert {kind.num for kind in cache_shape(config).layers} == {13}


def test_layers_with_another_state_are_named_not_guessed() -> None:
    kinds = ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 8
    shape = cache_shape(models.LLAMA_3_8B | {"layer_types": kinds})
    assert shape.unknown == ("linear_attention",)
    assert shape.token_bytes == 8 * 2 * 8 * 128 * 2


def test_a_size_that_is_missing_is_an_error() -> None:
    with pytest.raises(KeyError, match="num_hidden_layers"):
        cache_shape({"hidden_size": 64, "num_attention_heads": 2})


@given(st.integers(1, 200_000), st.integers(1, 200_000))
def test_a_longer_sequence_never_takes_less(one: int, other: int) -> None:
    shape = cache_shape(models.MISTRAL_7B_V01)
    least, most = sorted((one, other))
    assert shape.sequence_bytes(least) <= shape.sequence_bytes(most) + 16 * shape.token_bytes
    assert shape.sequence_bytes(least) >= min(least, 4096) * shape.token_bytes
