"""What other architectures, and transformers' own changes to names, do rightly: no finding. As seen on small models of each."""

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from qgate.inspection import completeness, essentials, fields, membership, tensors, vocabulary
from qgate.inspection.facts import Facts
from qgate.inspection.layers import quantized_layers
from qgate.inspection.scheme import promise
from qgate.rooms.inspect import inspect
from tests.unit.inspection.planting import write
from tests.unit.inspection.test_facts import CT, LINEAR, codes, facts, header

NORM = "model.norm.weight"
LAYER = "model.layers.{}.self_attn.{}.weight"


def of(*names: str, **config: Any) -> Facts:
    return facts({name: header(8, 8) for name in names}, config=config)


@pytest.mark.parametrize(
    ("mine", "lost", "config"),
    [
        ("gpt_neox.layers.0.attention.dense.weight", "gpt_neox.layers.0.attention.bias", {}),
        ("model.layers.0.mlp.up_proj.weight", "model.mtp_layers.0.mlp.up_proj.weight", {}),
        ("model.layers.0.mlp.up_proj.weight", "model.mtp_linear_proj.0.weight", {}),
        (
            LAYER.format(3, "q_proj"),
            LAYER.format(3, "k_norm"),
            {"num_hidden_layers": 4, "num_kv_shared_layers": 2},
        ),
    ],
    ids=["GPT-NeoX", "MiMo", "ERNIE", "Gemma 4"],
)
def test_what_transformers_leaves_out_when_it_saves_is_not_missing(
    mine: str, lost: str, config: dict[str, Any]
) -> None:
    assert codes(completeness.check(of(mine, **config), of(mine, lost, **config))) == []


def test_of_layers_that_share_keys_and_values_all_else_is_needed() -> None:
    config = {"num_hidden_layers": 4, "num_kv_shared_layers": 2}
    keys, queries = LAYER.format(1, "k_proj"), LAYER.format(3, "q_proj")
    for kept in (queries, keys):
        assert codes(completeness.check(of(kept, **config), of(keys, queries, **config))) == ["tensor-missing"]


@pytest.mark.parametrize(("field", "expected"), [({"block_configs": []}, []), ({}, ["tensor-missing"])])
def test_layers_and_experts_that_were_pruned_away_are_not_missing(field: dict[str, Any], expected: list[str]) -> None:
    names = [f"model.layers.{number}.mlp.experts.0.up_proj.weight" for number in (0, 1, 3)]
    found = of(*names, num_hidden_layers=4, n_routed_experts=2, **field)
    assert codes(completeness.check(found, None)) == codes(essentials.check(found)) == expected


def test_granites_stack_of_experts_may_be_taken_apart() -> None:
    mixture, rest = "model.layers.0.block_sparse_moe", {NORM: header(8)}
    theirs = facts(rest | {f"{mixture}.input_linear.weight": header(4, 16, 8)})
    apart = facts(rest | {f"{mixture}.experts.{number}.up_proj.weight": header(8, 8) for number in range(4)})
    assert codes(completeness.check(apart, theirs)) == []
    assert codes(completeness.check(facts(rest), theirs)) == ["tensor-missing"]


@pytest.mark.parametrize(
    ("kind", "rows", "expected"), [("mllama_text_model", 40, []), ("llama", 40, ["vocabulary-size"])]
)
def test_llama_vision_has_rows_beyond_its_vocabulary(kind: str, rows: int, expected: list[str]) -> None:
    tensors = {
        "language_model.model.embed_tokens.weight": header(rows, 8),
        "language_model.lm_head.weight": header(32, 8),
    }
    config = {"model_type": "outer", "text_config": {"model_type": kind, "vocab_size": 32}}
    assert codes(vocabulary.check(facts(tensors, config=config), None)) == expected


@pytest.mark.parametrize(("outer", "expected"), [(None, ["head-missing"]), (False, ["head-missing"]), (True, [])])
def test_a_head_that_the_outer_config_ties_is_not_missing(outer: bool | None, expected: list[str]) -> None:
    config = {
        "tie_word_embeddings": outer,
        "architectures": ["InternVLForConditionalGeneration"],
        "model_type": "internvl",
    }
    config |= {"text_config": {"tie_word_embeddings": False, "model_type": "qwen2"}}
    found = facts({"model.language_model.embed_tokens.weight": header(8, 8)}, config=config)
    assert codes(vocabulary.check(found, None)) == expected


@pytest.mark.parametrize(("field", "expected"), [({"qkv_bias": False}, []), ({}, ["tensor-missing"])])
def test_qwen_mixtures_may_have_no_biases_and_an_embedding_may_be_quantized(
    field: dict[str, Any], expected: list[str]
) -> None:
    names = [f"model.layers.0.{norm}.weight" for norm in essentials.NORMS] + [LAYER.format(0, "q_proj")]
    config = {"model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], **field}
    assert codes(essentials.check(of(NORM, "model.embed_tokens.weight_packed", *names, **config))) == expected


def test_a_quantized_embedding_has_a_scheme_of_its_own() -> None:
    whole = {"targets": ["Embedding"], "weights": {"num_bits": 8, "strategy": "channel"}}
    said = CT | {"config_groups": {"first": LINEAR, "second": whole}}
    tensors_of = {
        "model.embed_tokens": (header(256, 32, dtype="I32"), header(256, 1)),
        "model.layers.0.mlp.up_proj": (header(256, 16, dtype="I32"), header(256, 1)),
    }
    packed = {f"{module}.weight_packed": each[0] for module, each in tensors_of.items()}
    scales = {f"{module}.weight_scale": each[1] for module, each in tensors_of.items()}
    shapes = {f"{module}.weight_shape": header(2, dtype="I64") for module in tensors_of}
    found = facts(packed | scales | shapes, quantization=said)
    layers = quantized_layers(found, promise(found.config))
    assert {layer.module: layer.scheme.bits for layer in layers} == dict(zip(tensors_of, (8, 4), strict=True))
    assert codes(tensors.check(found, layers)) == []


def test_embeddings_of_positions_are_no_linear_layers() -> None:
    packed = {"model.layers.0.mlp.up_proj.weight_packed": header(64, 16, dtype="I32")}
    positions = {"model.visual.pos_embed.weight": header(64, 64)}
    assert codes(membership.check(facts(packed | positions, quantization=CT))) == []


@pytest.mark.parametrize("name", ["v_head_dim", "num_experts_per_token"])
def test_names_that_are_near_others_and_fields_all_the_same(name: str) -> None:
    assert fields.renamed(facts(config={name: 8}), None) == {}
    assert fields.renamed(facts(config={"num_hidden_layer": 8}), None) == {"num_hidden_layer": "num_hidden_layers"}


@pytest.mark.parametrize(("kind", "expected"), [("gemma2", []), ("llama", ["plain-tensor-differs"])])
def test_a_norm_is_compared_as_it_multiplies(tmp_path: Path, kind: str, expected: list[str]) -> None:
    """llm-compressor takes Gemma's centre away and adds it again, in bfloat16: at weights near zero a large difference."""
    weights = np.linspace(-0.1, 0.1, 64, dtype=np.float32)
    for name, norm in (("theirs", weights), ("mine", weights + 0.002)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_bytes(orjson.dumps({"model_type": kind}))
        write(folder / "model.safetensors", {NORM: norm.astype(np.float32)}, {NORM: "F32"})
    found = inspect(tmp_path / "mine", tmp_path / "theirs", weights=True)
    assert [each.code for each in found.findings if each.code.startswith("plain")] == expected
