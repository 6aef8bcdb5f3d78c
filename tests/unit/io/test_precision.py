"""Precision and parameter counts of every serialisation that qgate reads, on tensors laid out as each tool writes them."""

import struct
from pathlib import Path
from typing import Any

import pytest

from qgate.errors import CheckpointError
from qgate.io import precision, tensors
from tests.unit.tiny_checkpoint import Entries, write_safetensors

ROWS, COLUMNS, GROUP = 32, 64, 32
Q = "model.layers.0.self_attn.q_proj"


def stored(folder: Path, entries: Entries, data: dict[str, bytes] | None = None) -> dict[str, tensors.Tensor]:
    write_safetensors(folder / "model.safetensors", entries, data)
    return tensors.read(folder)


def compressed(bits: int, kind: str = "int", inputs: int | None = None) -> dict[str, Any]:
    group: dict[str, Any] = {"targets": ["Linear"], "weights": {"num_bits": bits, "type": kind}}
    if inputs is not None:
        group["input_activations"] = {"num_bits": inputs, "type": kind}
    return {"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}}}


def test_packed_weights_count_as_their_weight_shape(tmp_path: Path) -> None:
    entries: Entries = {
        f"{Q}.weight_packed": ("I32", (ROWS, COLUMNS // 8)),
        f"{Q}.weight_scale": ("F16", (ROWS, COLUMNS // GROUP)),
        f"{Q}.weight_zero_point": ("I32", (ROWS // 8, COLUMNS // GROUP)),
        f"{Q}.weight_shape": ("I64", (2,)),
        "model.norm.weight": ("F16", (COLUMNS,)),
    }
    found = stored(tmp_path, entries, {f"{Q}.weight_shape": struct.pack("<2q", ROWS, COLUMNS)})
    config = compressed(4)
    assert precision.precision(config, found) == "W4A16"
    assert precision.num_parameters(config, found) == ROWS * COLUMNS + COLUMNS


def test_packed_weights_without_a_shape_count_by_their_bits(tmp_path: Path) -> None:
    found = stored(tmp_path, {f"{Q}.weight_packed": ("U8", (ROWS, COLUMNS // 2))})
    assert precision.num_parameters(compressed(4, "float", 4), found) == ROWS * COLUMNS


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (compressed(8, "int", 8), "W8A8"),
        (compressed(8), "W8A16"),
        (compressed(8, "float", 8), "FP8"),
        (compressed(4, "int", 8), "W4A8"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "W4A16"),
        ({"quantization_config": {"quant_method": "awq", "w_bit": 4}}, "W4A16"),
        ({"quantization_config": {"quant_method": "fp8"}}, "FP8"),
    ],
)
def test_precision_is_named_as_vllm_does(tmp_path: Path, config: dict[str, Any], wanted: str) -> None:
    assert precision.precision(config, stored(tmp_path, {f"{Q}.weight": ("I8", (ROWS, COLUMNS))})) == wanted


def test_int8_weights_count_once_and_their_scales_not(tmp_path: Path) -> None:
    found = stored(tmp_path, {f"{Q}.weight": ("I8", (ROWS, COLUMNS)), f"{Q}.weight_scale": ("F16", (ROWS, 1))})
    assert precision.num_parameters(compressed(8, "int", 8), found) == ROWS * COLUMNS


def test_gptq_and_awq_layouts(tmp_path: Path) -> None:
    gptq: Entries = {
        f"{Q}.qweight": ("I32", (COLUMNS // 8, ROWS)),
        f"{Q}.qzeros": ("I32", (COLUMNS // GROUP, ROWS // 8)),
        f"{Q}.scales": ("F16", (COLUMNS // GROUP, ROWS)),
        f"{Q}.g_idx": ("I32", (COLUMNS,)),
    }
    config = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    assert precision.num_parameters(config, stored(tmp_path, gptq)) == ROWS * COLUMNS
    awq: Entries = {
        f"{Q}.qweight": ("I32", (COLUMNS, ROWS // 8)),
        f"{Q}.qzeros": ("I32", (COLUMNS // GROUP, ROWS // 8)),
    }
    config = {"quantization_config": {"quant_method": "awq", "bits": 4}}
    assert precision.num_parameters(config, stored(tmp_path, awq)) == ROWS * COLUMNS


def test_tied_embeddings_count_once_untied_ones_twice(tmp_path: Path) -> None:
    entries: Entries = {"model.embed_tokens.weight": ("BF16", (7, 8)), "lm_head.weight": ("BF16", (7, 8))}
    found = stored(tmp_path, entries)
    assert precision.num_parameters({"tie_word_embeddings": True}, found) == 56
    assert precision.num_parameters({"tie_word_embeddings": False}, found) == 112
    assert precision.precision({}, found) == "BF16"


def test_plain_checkpoints_keep_parameters_that_are_called_scales(tmp_path: Path) -> None:
    found = stored(tmp_path, {"model.layers.0.k_scale": ("F16", (5,)), "model.layers.0.w.weight": ("F16", (4, 5))})
    assert precision.num_parameters({}, found) == 25


@pytest.mark.parametrize("method", ["bitsandbytes", "quip", None])
def test_an_unknown_method_is_refused(tmp_path: Path, method: str | None) -> None:
    found = stored(tmp_path, {f"{Q}.weight": ("U8", (4, 4))})
    with pytest.raises(CheckpointError, match="does not know"):
        precision.precision({"quantization_config": {"quant_method": method}}, found)


def test_a_config_without_groups_or_bits_is_refused(tmp_path: Path) -> None:
    found = stored(tmp_path, {f"{Q}.weight": ("I8", (4, 4))})
    with pytest.raises(CheckpointError, match="no config_groups"):
        precision.precision({"quantization_config": {"quant_method": "compressed-tensors"}}, found)
    with pytest.raises(CheckpointError, match="says no `bits`"):
        precision.precision({"quantization_config": {"quant_method": "gptq"}}, found)
