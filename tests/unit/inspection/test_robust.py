"""Whatever a checkpoint's JSON holds, inspection ends with findings or with CheckpointError, never with another error."""

import copy
import json
import os
import random
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qgate.errors import CheckpointError
from qgate.inspection.examine import examine
from qgate.io import tensors
from qgate.io.survey import survey
from qgate.rooms.inspect import inspect
from tests.unit.inspection.planting import BASELINE, FIXTURES

ODD = (None, True, -1, 0, 3, 1e308, "", "x", [], [None], ["a", 1], {}, {"a": {"b": 1}}, [[1]])
SOURCES = ("gptq-v1", "awq-gemm", "pack-quantized-asym", "float-quantized-static", "baseline")


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and key in it."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(min(4, len(value))) if isinstance(value, list) else []
    for key in keys:
        found.append((value, key))
        found += places(value[key]) if not isinstance(value[key], dict) or len(value[key]) < 50 else []
    return found


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"])
def test_odd_values_anywhere(source: str, file: str, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(FIXTURES / source, folder)
    content = json.loads((folder / file).read_text())
    generator = random.Random(f"{source} {file} 7")
    baseline = survey(BASELINE).facts
    for _ in range(30):
        changed = copy.deepcopy(content)
        for _ in range(generator.randint(1, 2)):
            holder, key = generator.choice(places(changed))
            try:
                holder[key] = copy.deepcopy(generator.choice(ODD))
            except (KeyError, IndexError):
                continue
        (folder / file).write_bytes(json.dumps(changed).encode())
        try:
            read = survey(folder)
        except CheckpointError:
            continue
        examine(read.facts, baseline, 2)


def test_each_field_of_the_config_odd_or_gone() -> None:
    whole = survey(BASELINE).facts
    said = {name: value for name, value in whole.config.items() if name != "tie_word_embeddings"}
    for name in said:
        for rest in ({}, *({name: value} for value in ODD)):
            changed = replace(whole, config={key: value for key, value in said.items() if key != name} | rest)
            examine(changed, whole)
            examine(whole, changed)


def test_odd_values_with_the_weights(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(FIXTURES / "pack-quantized", folder)
    content = json.loads((folder / "config.json").read_text())
    generator = random.Random(7)
    for _ in range(30):
        changed = copy.deepcopy(content)
        holder, key = generator.choice(places(changed["quantization_config"]))
        holder[key] = generator.choice(
            [*copy.deepcopy(ODD), 2, 8, 16, 64, "group", "channel", "float", "float-quantized"]
        )
        (folder / "config.json").write_bytes(json.dumps(changed).encode())
        inspect(folder, BASELINE, weights=True)


def test_odd_bytes_in_the_weight_file(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(FIXTURES / "gptq-v1", folder)
    file = folder / "model.safetensors"
    data = file.read_bytes()
    generator = random.Random(7)
    for _ in range(30):
        changed = bytearray(data)
        for _ in range(4):
            changed[generator.randrange(3000)] = generator.randrange(256)
        file.write_bytes(changed[: len(changed) - generator.choice((0, 0, 1, 5000))])
        inspect(folder, BASELINE, weights=True)


ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def headed(header: Any) -> bytes:
    """A safetensors file of this header and eight bytes of weights."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + bytes(8)


LYING = {
    "overlap": headed({"a": ONE, "b": {**ONE, "shape": [1], "data_offsets": [4, 8]}}),
    "fractions": headed({"a": {**ONE, "shape": [2.0], "data_offsets": [0.0, 8.0]}}),
    "booleans": headed({"a": {**ONE, "shape": [True, 2], "data_offsets": [False, 8]}}),
    "negative": headed({"a": {**ONE, "shape": [-2], "data_offsets": [8, 0]}}),
    "before the data": headed({"a": {**ONE, "data_offsets": [-8, 0]}}),
    "no name": headed({"a": {**ONE, "dtype": 5}}),
    "nested": headed(b"[" * 200_000),
    "nested metadata": headed(b'{"__metadata__":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001),
    "empty": b"",
    "huge header": struct.pack("<Q", 1 << 62),
}


def without_weights(tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    shutil.copytree(BASELINE, folder)
    (folder / "model.safetensors").unlink()
    return folder


@pytest.mark.parametrize("name", LYING)
def test_a_header_that_lies_is_a_finding(name: str, tmp_path: Path) -> None:
    folder = without_weights(tmp_path)
    (folder / "model.safetensors").write_bytes(LYING[name])
    found = inspect(folder, BASELINE, weights=True)
    assert "shard-unreadable" in {each.code for each in found.findings}
    with pytest.raises(CheckpointError):
        tensors.read(folder)


@pytest.mark.parametrize("kind", ["folder", "link to itself", "link to nothing", "pipe"])
def test_a_weight_file_that_is_none_is_a_finding(kind: str, tmp_path: Path) -> None:
    folder = without_weights(tmp_path)
    file = folder / "model.safetensors"
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(file if kind == "link to itself" else folder / "nothing")
    assert "shard-unreadable" in {each.code for each in inspect(folder, BASELINE, weights=True).findings}
    with pytest.raises(CheckpointError, match="no file that can be read"):
        tensors.read(folder)


@pytest.mark.parametrize("name", ["../outside.safetensors", "a" * 5000, ".", "", "a\0b"])
def test_an_index_names_files_of_its_folder(name: str, tmp_path: Path) -> None:
    folder = without_weights(tmp_path)
    (tmp_path / "outside.safetensors").write_bytes(headed({"a": ONE}))
    (folder / tensors.INDEX).write_text(json.dumps({"weight_map": {"a": name}}))
    assert "shard-missing" in {each.code for each in inspect(folder, None, weights=True).findings}
    with pytest.raises(CheckpointError, match="lacks 1 of 1 weight files"):
        tensors.read(folder)


def test_a_model_without_its_layers_is_an_error(tmp_path: Path) -> None:
    folder = without_weights(tmp_path)
    (folder / "model.safetensors").write_bytes(headed({"model.norm.weight": ONE}))
    found = inspect(folder, None, weights=True).findings
    assert [(each.severity, each.places) for each in found if each.code == "tensor-missing"] == [("error", ("layers",))]


@pytest.mark.parametrize("header", [{}, {"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}])
def test_weight_files_that_hold_nothing_are_missing_weights(header: dict[str, Any], tmp_path: Path) -> None:
    folder = without_weights(tmp_path)
    raw = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw)
    assert "weights-missing" in {each.code for each in inspect(folder, None).findings}
    with pytest.raises(CheckpointError, match="without a tensor that holds a value"):
        tensors.read(folder)


def test_an_index_of_nothing_is_missing_weights(tmp_path: Path) -> None:
    folder = without_weights(tmp_path)
    (folder / tensors.INDEX).write_text(json.dumps({"weight_map": {}}))
    assert "weights-missing" in {each.code for each in inspect(folder, None).findings}


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("tokenizer.json", "tokenizer-unreadable"),
        ("tokenizer_config.json", "tokenizer-unreadable"),
        ("generation_config.json", "generation-unreadable"),
    ],
)
@pytest.mark.parametrize("kind", ["list", "pipe"])
def test_a_settings_file_that_is_no_object_is_unreadable(file: str, code: str, kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(BASELINE, folder)
    (folder / file).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / file)
    else:
        (folder / file).write_text("[]")
    assert code in {each.code for each in inspect(folder, None).findings}


@pytest.mark.parametrize("said", [[1], "awq", {"quant_method": "gptq", "bits": 1000}])
def test_a_quantization_config_that_nothing_can_read_is_told_of_plain_weights_too(said: Any, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(BASELINE, folder)
    config = json.loads((folder / "config.json").read_text()) | {"quantization_config": said}
    (folder / "config.json").write_text(json.dumps(config))
    assert "quantization-config-wrong" in {each.code for each in inspect(folder, None).findings}


@pytest.mark.parametrize("name", ["num_hidden_layers", "rope_theta", "vocab_size", "num_attention_heads"])
@pytest.mark.parametrize("value", [10**15, 10**400])
def test_numbers_beyond_reason_cost_neither_memory_nor_an_error(name: str, value: int, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(FIXTURES / "gptq-v1", folder)
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**content, "rope_parameters": None, name: value}))
    for baseline in (None, survey(BASELINE).facts):
        examine(survey(folder).facts, baseline, 2)
