from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from qgate.ports import QuantizeJob
from qgate.quantizers.llmcompressor import QUANTIZER, Options


def options(**said: Any) -> Options:
    return Options(**said)


def request(tmp_path: Path, chosen: Options) -> dict[str, Any]:
    texts = tmp_path / "texts.jsonl" if QUANTIZER.needs_calibration(chosen) else None
    return QUANTIZER.request(
        QuantizeJob(
            model=tmp_path / "model",
            output=tmp_path / "out",
            options=chosen,
            dtype="float16",
            calibration_file=texts,
            sequence_length=256,
            seed=7,
            work=tmp_path,
        )
    )


@pytest.mark.parametrize(
    ("scheme", "algorithm", "precision", "group", "calibrated"),
    [
        ("W8A8", "smoothquant_gptq", "W8A8", None, True),
        ("W8A8", "rtn", "W8A8", None, False),
        ("W4A16", "gptq", "W4A16", 128, True),
        ("W4A16_ASYM", "awq", "W4A16", 128, True),
        ("W4A16", "rtn", "W4A16", 128, False),
        ("W8A16", "rtn", "W8A16", 128, False),
        ("FP8_DYNAMIC", "rtn", "FP8", None, False),
    ],
)
def test_what_each_combination_is(
    scheme: str, algorithm: str, precision: str, group: int | None, calibrated: bool
) -> None:
    chosen = options(scheme=scheme, algorithm=algorithm)
    assert QUANTIZER.precision(chosen) == precision
    assert QUANTIZER.group_size(chosen) == group
    assert QUANTIZER.needs_calibration(chosen) == calibrated
    assert QUANTIZER.ignored(chosen) == ("lm_head",)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"scheme": "FP8_DYNAMIC", "algorithm": "gptq"}, "gptq does not make FP8_DYNAMIC"),
        ({"scheme": "W8A8", "algorithm": "awq"}, "awq does not make W8A8; it makes W4A16, W4A16_ASYM, W8A16"),
        ({"scheme": "W4A16", "algorithm": "smoothquant_gptq"}, "smoothquant_gptq does not make W4A16"),
        ({"scheme": "W8A8", "algorithm": "rtn", "group_size": 32}, "leave `group_size` out"),
        ({"scheme": "W4A16", "algorithm": "gptq", "n_grid": 4}, "`n_grid` belongs to awq, not to gptq"),
        (
            {"scheme": "W4A16", "algorithm": "rtn", "actorder": "group"},
            "`actorder` belongs to gptq and smoothquant_gptq",
        ),
        ({"scheme": "W4A16", "algorithm": "gptq", "smoothing_strength": 0.5}, "belongs to smoothquant_gptq"),
        ({"scheme": "W3A16", "algorithm": "gptq"}, "Input should be"),
        ({"scheme": "W4A16", "algorithm": "gptq", "groupsize": 32}, "Extra inputs are not permitted"),
    ],
)
def test_what_does_not_fit_is_refused(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Options(**said)


def test_smoothquant_comes_before_gptq_and_activations_are_dynamic_int8(tmp_path: Path) -> None:
    made = request(tmp_path, options(scheme="W8A8", algorithm="smoothquant_gptq", smoothing_strength=0.7))
    smooth, gptq = made["modifiers"]
    assert smooth == {"name": "SmoothQuantModifier", "args": {"smoothing_strength": 0.7}}
    group = gptq["args"]["config_groups"]["group_0"]
    assert group["input_activations"] == {
        "num_bits": 8, "type": "int", "strategy": "token", "symmetric": True, "dynamic": True,
    }  # fmt: skip
    assert group["weights"]["strategy"] == "channel"
    assert gptq["args"]["dampening_frac"] == 0.01


def test_awq_only_scales_and_a_quantization_modifier_follows_it(tmp_path: Path) -> None:
    made = request(tmp_path, options(scheme="W4A16_ASYM", algorithm="awq", group_size=32, n_grid=4))
    awq, rounding = made["modifiers"]
    assert awq == {"name": "AWQModifier", "args": {"n_grid": 4, "duo_scaling": True}}
    assert rounding["name"] == "QuantizationModifier"
    assert rounding["args"]["config_groups"]["group_0"]["weights"] == {
        "num_bits": 4, "type": "int", "symmetric": False, "dynamic": False, "strategy": "group", "group_size": 32,
    }  # fmt: skip


def test_fp8_has_float_activations_per_token(tmp_path: Path) -> None:
    made = request(tmp_path, options(scheme="FP8_DYNAMIC", algorithm="rtn"))
    group = made["modifiers"][0]["args"]["config_groups"]["group_0"]
    assert (group["weights"]["type"], group["input_activations"]["type"]) == ("float", "float")
    assert made["calibration_file"] is None
