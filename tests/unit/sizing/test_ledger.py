"""The ledger of published models: weights to the byte, the rest against what vLLM reported, and what differs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from qgate.engines import vllm_log
from qgate.sizing.cache import cache_shape
from qgate.sizing.ledger import GIB, Serving, ledger, num_graphs
from qgate.sizing.reported import differences
from qgate.sizing.weights import weight_bytes
from tests.unit.sizing import models
from tests.unit.sizing.models import model


def test_weights_of_published_models_are_two_bytes_a_parameter() -> None:
    assert weight_bytes(models.LLAMA_3_8B, models.llama_like(models.LLAMA_3_8B)) == 2 * 8_030_261_248
    qwen = models.llama_like(models.QWEN_2_5_7B, bias=True)
    assert weight_bytes(models.QWEN_2_5_7B, qwen) == 2 * 7_615_616_512
    assert weight_bytes(models.MISTRAL_7B_V01, models.llama_like(models.MISTRAL_7B_V01)) == 2 * 7_241_732_096


def test_float32_files_are_served_in_half_of_it() -> None:
    stored = models.llama_like(models.SMOLLM2_135M, dtype="F32")
    assert weight_bytes(models.SMOLLM2_135M, stored) == 2 * 134_515_008


def test_a_tied_head_that_is_stored_all_the_same_is_counted_once() -> None:
    stored = models.llama_like(models.SMOLLM2_135M)
    twice = {**stored, "lm_head.weight": stored["model.embed_tokens.weight"]}
    assert weight_bytes(models.SMOLLM2_135M, twice) == weight_bytes(models.SMOLLM2_135M, stored)


def test_quantized_weights_take_what_they_take_in_the_file() -> None:
    packed = models.w4a16(models.llama_like(models.LLAMA_3_8B), group=128)
    in_layers = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14_336 * 4096)
    outside = 2 * (2 * 128_256 * 4096 + 65 * 4096)
    assert weight_bytes(models.LLAMA_3_8B, packed) == in_layers // 2 + in_layers // 128 * 2 + outside


def test_tensor_parallelism_splits_matrices_and_repeats_vectors() -> None:
    stored = models.llama_like(models.LLAMA_3_8B)
    norms = 2 * 65 * 4096
    matrices = 2 * 8_030_261_248 - norms
    assert weight_bytes(models.LLAMA_3_8B, stored, tensor_parallel=4) == matrices // 4 + norms


def test_pipeline_parallelism_gives_whole_layers_and_one_end() -> None:
    stored = models.llama_like(models.LLAMA_3_8B)
    end = 2 * 128_256 * 4096
    inner = 2 * 8_030_261_248 - 2 * end - 2 * 4096
    assert weight_bytes(models.LLAMA_3_8B, stored, pipeline_parallel=2) == inner // 2 + end + 2 * 4096


def test_the_kv_cache_is_for_the_requests_in_flight_and_at_least_for_one() -> None:
    stored, per_token = models.llama_like(models.LLAMA_3_8B), cache_shape(models.LLAMA_3_8B).token_bytes
    made = ledger(model(models.LLAMA_3_8B, stored), Serving(), [1600] * 64, context=2048)
    assert made.kv_cache == (64 * 1600 + 256) * per_token  # with what vLLM keeps for itself
    assert made.least_kv_cache == (2048 + 256) * per_token
    few = ledger(model(models.LLAMA_3_8B, stored), Serving(max_num_seqs=8), [1600] * 64, context=2048)
    assert few.kv_cache == (8 * 1600 + 256) * per_token
    none = ledger(model(models.LLAMA_3_8B, stored), Serving(), [], context=2048)
    assert none.kv_cache == none.least_kv_cache


def test_two_pipeline_stages_keep_half_of_the_layers_each() -> None:
    stored = models.llama_like(models.LLAMA_3_8B)
    one = ledger(model(models.LLAMA_3_8B, stored), Serving(), [1024], context=1024)
    two = ledger(model(models.LLAMA_3_8B, stored), Serving(pipeline_parallel=2), [1024], context=1024)
    assert two.kv_cache == one.kv_cache // 2
    assert (one.num_devices, two.num_devices) == (1, 2)


def test_the_total_adds_up_and_eager_takes_no_graphs() -> None:
    made = ledger(
        model(models.QWEN_2_5_7B, models.llama_like(models.QWEN_2_5_7B, bias=True)), Serving(), [512], context=2048
    )
    parts = made.weights + made.kv_cache + made.activations + made.scoring + made.graphs + made.context
    assert made.total == parts
    eager = ledger(
        model(models.QWEN_2_5_7B, models.llama_like(models.QWEN_2_5_7B)), Serving(graphs=False), [512], context=2048
    )
    assert eager.graphs == 0
    assert made.in_gib()["total"] == pytest.approx(made.total / GIB, abs=0.001)


def test_experts_take_their_activations_once_each() -> None:
    dense = models.DEEPSEEK_V2_LITE | {"num_experts_per_tok": None}
    few, many = (
        ledger(model(config, {}), Serving(), [], context=2048).activations
        for config in (dense, models.DEEPSEEK_V2_LITE)
    )
    assert many >= few


def test_graphs_as_vllm_captures_them() -> None:
    assert num_graphs(Serving(max_num_seqs=256)) == 51 + 35  # as its log said with 256 sequences and 7168 tokens


def test_the_ledger_is_held_against_what_a_server_on_an_h200_said() -> None:
    log = (Path(__file__).parent / "vllm-0.26-h200.log").read_text(encoding="utf-8")
    said = vllm_log.numbers(log)
    stored = models.llama_like(models.SMOLLM2_135M, dtype="F32")
    made = ledger(model(models.SMOLLM2_135M, stored), Serving(step_tokens=7168), [600] * 128, context=8192)
    found = {entry.what: entry for entry in differences(made, cache_shape(models.SMOLLM2_135M), said)}
    assert set(found) == {"weights", "what the KV cache holds"}
    assert not any(entry.is_large for entry in found.values())
    assert abs(found["what the KV cache holds"].share) < 0.001
    assert made.graphs >= said["cuda_graphs_gib"] * GIB


def test_a_large_difference_is_told_in_words() -> None:
    made = ledger(model(models.LLAMA_3_8B, models.llama_like(models.LLAMA_3_8B)), Serving(), [512], context=2048)
    (entry,) = differences(made, cache_shape(models.LLAMA_3_8B), {"model_gib": 30.0})
    assert entry.is_large
    assert re.fullmatch(r"the ledger has 14\.96 GiB for weights, the server reports 30\.00 GiB", str(entry))
    small = replace(made, weights=GIB // 20)
    (entry,) = differences(small, cache_shape(models.LLAMA_3_8B), {"model_gib": 0.1})
    assert not entry.is_large  # twice as much, but only rounding


def test_less_than_an_upper_estimate_is_no_surprise() -> None:
    made = ledger(model(models.LLAMA_3_8B, models.llama_like(models.LLAMA_3_8B)), Serving(), [512], context=2048)
    shape = cache_shape(models.LLAMA_3_8B)
    (few,) = differences(made, shape, {"activations_gib": 0.1})
    (many,) = differences(made, shape, {"activations_gib": 9.0})
    assert (few.is_large, many.is_large) == (False, True)


def test_a_kv_cache_that_the_recipe_sets_is_that_large() -> None:
    made = ledger(
        model(models.LLAMA_3_8B, models.llama_like(models.LLAMA_3_8B)), Serving(kv_bytes=GIB, only=(1,)), [99] * 9, 2048
    )
    assert made.kv_cache == made.least_kv_cache == GIB
    need = made.need("awq")
    assert (need.total_bytes, need.only, need.name) == (made.total, (1,), "awq")
