"""Whatever a checkpoint's JSON holds, inspection ends with findings or with CheckpointError, never with another error."""

import copy
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from qgate.errors import CheckpointError
from qgate.inspection.examine import examine
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
