"""What every registered quantizer must satisfy, a stranger's too."""

import ast
import json
import subprocess
import sys
from importlib.metadata import entry_points
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from qgate.io import locks
from qgate.ports import QuantizeJob, Quantizer, load_quantizer

NAMES = sorted(point.name for point in entry_points(group="qgate.quantizers"))


@pytest.fixture(params=NAMES)
def quantizer(request: pytest.FixtureRequest) -> Quantizer:
    return load_quantizer(request.param)


def every_choice(model: type[BaseModel]) -> list[BaseModel]:
    """The valid combinations of all its enumerated options."""
    choices = {name: get_args(field.annotation) for name, field in model.model_fields.items() if field.is_required()}
    assert all(choices.values()), "required options are enumerations, so that a recipe's author can see what there is"
    found = []
    for values in product(*choices.values()):
        try:
            found.append(model(**dict(zip(choices, values, strict=True))))
        except ValidationError:
            continue
    assert found
    return found


def job(tmp_path: Path, options: BaseModel, texts: Path | None) -> QuantizeJob:
    return QuantizeJob(
        model=tmp_path / "model",
        output=tmp_path / "output",
        options=options,
        dtype="float16",
        calibration_file=texts,
        sequence_length=128,
        seed=0,
        work=tmp_path / "work",
    )


def test_there_is_one_at_least() -> None:
    assert NAMES


def test_it_is_found_under_its_own_name(quantizer: Quantizer) -> None:
    assert load_quantizer(quantizer.name) is quantizer


def test_its_options_are_closed_frozen_and_described(quantizer: Quantizer) -> None:
    config = quantizer.options.model_config
    assert config.get("extra") == "forbid"
    assert config.get("frozen")
    assert all(field.description for field in quantizer.options.model_fields.values())
    json.dumps(quantizer.options.model_json_schema())


def test_its_lock_exists_and_its_worker_is_a_script_that_compiles(quantizer: Quantizer) -> None:
    assert locks.find(quantizer.lock).pins
    tree = ast.parse(quantizer.worker.read_text(encoding="utf-8"), str(quantizer.worker))
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert not [name for name in imported if name.split(".")[0] == "qgate"], "a worker imports nothing of qgate"


def test_it_answers_for_every_combination_of_options(quantizer: Quantizer, tmp_path: Path) -> None:
    for options in every_choice(quantizer.options):
        precision = quantizer.precision(options)
        assert precision[0] in "WF"
        assert isinstance(quantizer.needs_calibration(options), bool)
        group = quantizer.group_size(options)
        assert group is None or group > 0
        assert all(isinstance(pattern, str) for pattern in quantizer.ignored(options))
        texts = tmp_path / "texts.jsonl" if quantizer.needs_calibration(options) else None
        first = quantizer.request(job(tmp_path, options, texts))
        assert json.loads(json.dumps(first)) == first, "a request is plain JSON"
        assert first == quantizer.request(job(tmp_path, options, texts)), "equal jobs, equal requests"


def test_other_options_make_another_request(quantizer: Quantizer, tmp_path: Path) -> None:
    seen: list[Any] = []
    for options in every_choice(quantizer.options):
        texts = tmp_path / "texts.jsonl" if quantizer.needs_calibration(options) else None
        seen.append(quantizer.request(job(tmp_path, options, texts)))
    assert all(seen.count(request) == 1 for request in seen)


def test_importing_it_stays_light(quantizer: Quantizer) -> None:
    module = type(quantizer).__module__
    heavy = "{'torch', 'transformers', 'llmcompressor', 'vllm'} & set(sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; sys.exit(bool({heavy}))"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
