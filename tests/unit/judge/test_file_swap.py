"""Two checkpoints' small files: what differs, and what one is with the other's parts."""

from __future__ import annotations

import json
from typing import Any

from qgate.judge import file_swap
from qgate.judge.file_swap import arithmetic, chat_template, differences, with_configuration, with_template


def files(**named: Any) -> dict[str, bytes]:
    return {
        name.replace("__", "."): value.encode() if isinstance(value, str) else json.dumps(value).encode()
        for name, value in named.items()
    }


CANDIDATE = files(
    config__json={"eos_token_id": 7, "rope_theta": 1, "dtype": "float16", "quantization_config": {"bits": 4}},
    generation_config__json={"eos_token_id": 7, "transformers_version": "5"},
    tokenizer_config__json={"chat_template": "bad", "eos_token": "<pad>", "extra": 1},
    tokenizer__json={"b": 1, "a": 2},
)
BASELINE = files(
    config__json={"eos_token_id": 2, "rope_theta": 1, "torch_dtype": "bfloat16"},
    generation_config__json={"eos_token_id": [2, 3], "transformers_version": "4"},
    tokenizer_config__json={"eos_token": {"content": "<|end|>"}},
    chat_template__jinja="good",
    tokenizer__json={"a": 2, "b": 1},
)


def test_differences_are_of_meaning_and_not_of_layout() -> None:
    found = {(each.of, each.where): (each.candidate, each.baseline) for each in differences(CANDIDATE, BASELINE)}
    assert found == {
        ("template_or_tokenizer", "chat template"): ("bad", "good"),
        ("eos_or_configuration", "config.json: eos_token_id"): ("7", "2"),
        ("eos_or_configuration", "generation_config.json: eos_token_id"): ("7", "[2, 3]"),
        ("eos_or_configuration", "tokenizer_config.json: eos_token"): ("<pad>", "<|end|>"),
    }
    assert differences(BASELINE, BASELINE) == ()


def test_another_tokenizer_and_a_missing_file_are_told() -> None:
    changed = {**BASELINE, "tokenizer.json": b'{"a": 3}', "merges.txt": b"x"}
    wheres = [each.where for each in differences(changed, BASELINE)]
    assert wheres == ["tokenizer.json", "merges.txt"]
    del changed["chat_template.jinja"]
    assert differences(changed, BASELINE)[0].candidate == "missing"


def test_a_long_value_is_cut() -> None:
    long = {**BASELINE, "chat_template.jinja": b"x" * 900}
    assert differences(long, BASELINE)[0].candidate.endswith("… (900 characters)")


def test_with_the_template_the_prompt_is_the_baselines_and_the_ends_are_its_own() -> None:
    made = apply(CANDIDATE, with_template(CANDIDATE, BASELINE))
    assert chat_template(made) == "good"
    assert {each.of for each in differences(made, BASELINE)} == {"eos_or_configuration"}
    assert json.loads(made["tokenizer_config.json"])["eos_token"] == "<pad>"
    assert made["config.json"] == CANDIDATE["config.json"]


def test_with_the_configuration_the_ends_are_the_baselines_and_the_weights_stay_described() -> None:
    made = apply(CANDIDATE, with_configuration(CANDIDATE, BASELINE))
    assert {each.of for each in differences(made, BASELINE)} == {"template_or_tokenizer"}
    config = json.loads(made["config.json"])
    assert config == {"eos_token_id": 2, "rope_theta": 1, "dtype": "float16", "quantization_config": {"bits": 4}}
    assert chat_template(made) == "bad"
    assert json.loads(made["tokenizer_config.json"])["extra"] == 1


def test_equal_files_are_not_written_again() -> None:
    assert with_template(BASELINE, BASELINE) == {}
    plain = files(config__json={"a": 1}, generation_config__json={})
    assert set(with_configuration(plain, plain)) <= {"config.json"}


def test_small_things() -> None:
    assert arithmetic(CANDIDATE) == "float16"
    assert arithmetic(BASELINE) == "bfloat16"
    assert arithmetic({}) is None
    assert chat_template({}) is None
    assert chat_template(files(chat_template__json={"chat_template": [{"name": "a"}]})) == '[{"name": "a"}]'
    assert file_swap.generation_config({"generation_config.json": b"not json"}) == {}


def apply(candidate: dict[str, bytes], changed: dict[str, bytes | None]) -> dict[str, bytes]:
    merged = {**candidate, **changed}
    return {name: data for name, data in merged.items() if data is not None}
