"""AutoAWQ, AutoGPTQ and GPTQModel as plugins: what they take, what they refuse, and what their users are told."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from qgate.ports import Archived, QuantizeJob, Quantizer, load_quantizer
from qgate.rooms.precheck import quantized_layers
from qgate.rooms.variants import successions
from qgate.schemas.recipe import Recipe
from tests.unit.tiny_checkpoint import PLAIN, write_checkpoint

NAMES = ("autoawq", "autogptq", "gptqmodel")


def request(name: str, tmp_path: Path, **options: Any) -> dict[str, Any]:
    quantizer = load_quantizer(name)
    job = QuantizeJob(
        model=tmp_path, output=tmp_path / "out", options=quantizer.options(**options), dtype="float16",
        calibration_file=tmp_path / "texts.jsonl", sequence_length=128, seed=3, work=tmp_path / "work",
    )  # fmt: skip
    return quantizer.request(job)


@pytest.mark.parametrize("name", NAMES)
def test_each_has_an_environment_of_its_own(name: str) -> None:
    assert load_quantizer(name).lock == name


def test_recipes_as_their_packages_write_them_are_taken(tmp_path: Path) -> None:
    awq = request("autoawq", tmp_path, zero_point=True, q_group_size=64, w_bit=4, version="GEMM")
    assert awq["quantization"] == {"w_bit": 4, "q_group_size": 64, "zero_point": True, "version": "GEMM"}
    assert awq["keep"] == ["lm_head"]
    gptq = request("autogptq", tmp_path, bits=8, group_size=32, desc_act=True)
    assert gptq["quantization"] == {
        "bits": 8, "group_size": 32, "sym": True, "desc_act": True, "static_groups": False, "damp_percent": 0.01,
        "true_sequential": True,
    }  # fmt: skip


def test_the_successor_takes_either_method(tmp_path: Path) -> None:
    awq = request("gptqmodel", tmp_path, method="awq", group_size=64)
    assert awq["quantization"] == {"bits": 4, "group_size": 64, "sym": False, "true_sequential": True}
    gptq = request("gptqmodel", tmp_path, method="gptq", desc_act=True)["quantization"]
    assert (gptq["sym"], gptq["desc_act"], gptq["act_group_aware"], gptq["format"]) == (True, True, False, "gptq")


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("autoawq", {"w_bit": 8}, "w_bit"),
        ("autoawq", {"zero_point": False}, "zero_point"),
        ("autoawq", {"version": "GEMV"}, "version"),
        ("autogptq", {"bits": 5}, "bits"),
        ("gptqmodel", {"bits": 4}, "method"),
        ("gptqmodel", {"method": "awq", "desc_act": True}, "`desc_act` belongs to gptq"),
        ("gptqmodel", {"method": "awq", "bits": 8}, "awq has 4 bits"),
        ("gptqmodel", {"method": "awq", "sym": True}, "awq has 4 bits and zero points"),
        ("gptqmodel", {"method": "gptq", "desc_act": True, "act_group_aware": True}, "choose one"),
    ],
)
def test_what_the_package_could_not_do_is_refused_by_name(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        load_quantizer(name).options(**options)


@pytest.mark.parametrize(
    ("name", "options", "left"),
    [
        ("autoawq", {"modules_to_not_convert": ["down_proj"]}, {"model.layers.0.self_attn.q_proj"}),
        ("gptqmodel", {"method": "gptq", "ignore": ["re:.*mlp"]}, {"model.layers.0.self_attn.q_proj"}),
        ("autogptq", {}, {"model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj"}),
    ],
)
def test_ignored_modules_are_known_before_any_work(
    name: str, options: dict[str, Any], left: set[str], tmp_path: Path
) -> None:
    from qgate.io import tensors

    quantizer: Quantizer = load_quantizer(name)
    stored = tensors.read(write_checkpoint(tmp_path / "model", PLAIN))
    assert set(quantized_layers(stored, quantizer.ignored(quantizer.options(**options)))) == left


def test_a_name_to_ignore_is_matched_whole_and_as_it_is(tmp_path: Path) -> None:
    names = ["model.layers.0.mlp.down_proj", "re:.*self_attn"]
    skipped = request("gptqmodel", tmp_path, method="gptq", ignore=names)["skip"]
    assert skipped == [r"model\.layers\.0\.mlp\.down_proj$", ".*self_attn"]


def test_users_of_an_archived_package_are_told_of_its_successor_and_others_are_not() -> None:
    variant = {"calibration": {"file": "texts.jsonl"}}
    recipe = Recipe.model_validate(
        {
            "qgate": 1, "name": "old", "model": {"path": "model"},
            "variants": {
                "a": {"quantizer": "autoawq", **variant}, "b": {"quantizer": "autogptq", **variant},
                "c": {"quantizer": "gptqmodel", "options": {"method": "awq"}, **variant}, "d": {"checkpoint": {"path": "x"}},
            },
            "evalsets": [{"name": "instruction@1"}],
            "sampling": {"greedy": {"temperature": 0, "max_tokens": 8, "seeds": [0]}},
            "tiers": {"t": {"default": "baseline", "allow": ["baseline"]}},
        }
    )  # fmt: skip
    told = successions(recipe)
    assert [line.split(":")[0] for line in told] == ["a", "b"]
    assert all("archived" in line and "gptqmodel" in line for line in told)
    assert "group_size" in told[0]
    assert "damp_percent 0.05" in told[1]
    assert not isinstance(load_quantizer("gptqmodel"), Archived)
