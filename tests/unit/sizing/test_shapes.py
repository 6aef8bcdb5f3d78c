"""The tensor that has the wrong shape is named, with the shape that config.json makes it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qgate.sizing.shapes import misshapen
from tests.unit.sizing import models
from tests.unit.sizing.models import Shape

GOOD = models.llama_like(models.SMOLLM2_135M)


def test_published_models_have_the_shapes_of_their_configs() -> None:
    for config in (models.LLAMA_3_8B, models.QWEN_2_5_7B, models.MISTRAL_7B_V01, models.SMOLLM2_135M):
        assert misshapen(config, models.llama_like(config)) is None


@given(st.sampled_from(sorted(name for name, tensor in GOOD.items() if len(set(tensor.shape)) == 2)))
def test_a_transposed_matrix_is_named(name: str) -> None:
    rows, columns = GOOD[name].shape
    said = misshapen(models.SMOLLM2_135M, {**GOOD, name: Shape((columns, rows))})
    assert said == f"{name} is [{columns}, {rows}], config.json makes it [{rows}, {columns}]"


def test_a_norm_of_another_size_is_named() -> None:
    said = misshapen(models.SMOLLM2_135M, {**GOOD, "model.layers.2.input_layernorm.weight": Shape((64,))})
    assert said == "model.layers.2.input_layernorm.weight is [64], config.json makes it [576]"


def test_what_is_not_known_is_not_judged() -> None:
    assert misshapen(models.DEEPSEEK_V2_LITE, {"model.layers.0.self_attn.q_proj.weight": Shape((3, 3))}) is None
    assert misshapen({}, GOOD) is None
    packed = {"model.layers.0.mlp.up_proj.weight": Shape((192, 72), "I32")}
    assert misshapen(models.SMOLLM2_135M, packed) is None
