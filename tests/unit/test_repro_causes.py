"""The planted causes are what they say: checked on a checkpoint of a few kilobytes, without a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests import repro_causes as causes

LAYER = "model.layers.4.mlp.down_proj.weight"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    weights = np.random.default_rng(1).normal(0, 0.02, (128, 256)).astype(np.float16)
    causes.write({LAYER: weights, "model.norm.weight": np.ones(128, np.float16)}, folder / causes.WEIGHTS)
    files = {
        "config.json": {"eos_token_id": 2, "model_type": "llama"},
        "generation_config.json": {"eos_token_id": 2, "pad_token_id": 2},
        "tokenizer_config.json": {"eos_token": "<|im_end|>"},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    (folder / "chat_template.jinja").write_text("own", encoding="utf-8")
    return folder


def unpacked(packed: np.ndarray) -> np.ndarray:
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    return ((packed.view(np.uint32)[:, :, None] >> shifts) & 15).astype(np.int64).reshape(len(packed), -1) - 8


def test_w4a16_gives_the_weights_back_within_half_a_step(model: Path, tmp_path: Path) -> None:
    made = causes.read(causes.w4a16(model, tmp_path / "made") / causes.WEIGHTS)
    stem = LAYER.removesuffix("weight")
    scales = made[f"{stem}weight_scale"].astype(np.float64)
    wide = unpacked(made[f"{stem}weight_packed"]) * np.repeat(scales, causes.GROUP, axis=1)
    weights = causes.read(model / causes.WEIGHTS)[LAYER].astype(np.float64)
    assert (np.abs(wide - weights) <= 0.51 * np.repeat(scales, causes.GROUP, axis=1)).all()
    assert made[f"{stem}weight_shape"].tolist() == [128, 256]
    assert made["model.norm.weight"].tolist() == [1.0] * 128
    assert LAYER not in made


def test_one_scale_is_spoiled_and_nothing_else(model: Path, tmp_path: Path) -> None:
    well = causes.read(causes.w4a16(model, tmp_path / "well") / causes.WEIGHTS)
    ill = causes.read(
        causes.w4a16(model, tmp_path / "ill", spoil=causes.one_scale_spoiled) / causes.WEIGHTS
    )  # fmt: skip
    assert {name: int((well[name] != ill[name]).sum()) for name in well if (well[name] != ill[name]).any()} == {
        f"{LAYER}_scale": 1
    }


def test_rounding_leaves_four_levels_to_a_group_at_two_bits(model: Path, tmp_path: Path) -> None:
    made = causes.read(causes.over_quantized(model, tmp_path / "made", bits=2) / causes.WEIGHTS)[LAYER]
    groups = made.reshape(-1, causes.GROUP)
    assert max(len(np.unique(group)) for group in groups) <= 4


def test_the_end_of_turn_is_lost_in_every_file(model: Path, tmp_path: Path) -> None:
    made = causes.with_base_eos(model, tmp_path / "made")
    said = {
        name: json.loads((made / name).read_text(encoding="utf-8"))
        for name in ("config.json", "generation_config.json")
    }
    assert [said[name]["eos_token_id"] for name in said] == [0, 0]
    assert json.loads((made / "tokenizer_config.json").read_text(encoding="utf-8")) == {"eos_token": "<|endoftext|>"}
    assert json.loads((model / "config.json").read_text(encoding="utf-8"))["eos_token_id"] == 2


def test_another_template_leaves_the_good_one_alone(model: Path, tmp_path: Path) -> None:
    made = causes.with_template(model, tmp_path / "made", "other")
    assert (made / "chat_template.jinja").read_text(encoding="utf-8") == "other"
    assert (model / "chat_template.jinja").read_text(encoding="utf-8") == "own"
