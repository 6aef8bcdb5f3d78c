"""AutoAWQ's fault on CPUs, on the demo model's own weights: well-formed, answers garbage, and found by inspection.

Uses the locked environment `autoawq`; two layers of the model, a minute on two idle cores.
"""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from qgate.ports import Tool
from qgate.rooms.inspect import inspect
from tests.integration.conftest import SHORT

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
WORKERS = Path(__file__).parents[2] / "qgate" / "workers"
QUANTIZATION = {"w_bit": 4, "q_group_size": 64, "zero_point": True, "version": "gemm"}


def test_the_unmended_package_writes_weights_that_inspection_finds(
    short_model: Path, package_tool: Callable[[str], Tool], tmp_path: Path
) -> None:
    tool = package_tool("autoawq")
    texts = [" ".join(f"Crate {n} stands in hall {n * k % 7}." for n in range(12)) for k in range(1, 5)]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (tmp_path / "made").mkdir()
    paths = {"model": short_model, "output": tmp_path / "made", "scratch": tmp_path / "scratch"}
    paths |= {"progress_file": tmp_path / "progress.json", "calibration_file": tmp_path / "texts.jsonl"}
    request = {name: str(path) for name, path in paths.items()}
    request |= {"dtype": "float16", "sequence_length": 64, "seed": 0, "quantization": QUANTIZATION, "keep": ["lm_head"]}
    (tmp_path / "request.json").write_text(json.dumps(request | {"duo_scaling": True, "clip": False}))
    script = str(Path(__file__).with_name("autoawq_unmended.py"))
    environment = os.environ | {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "20000000000"}
    subprocess.run([tool.python, script, tmp_path / "request.json", WORKERS], check=True, env=environment)
    found = inspect(tmp_path / "made", short_model)
    assert not found.errors, "nothing of its form is wrong"
    found = inspect(tmp_path / "made", short_model, weights=True)
    (error,) = found.errors
    assert error.code == "weight-error"
    assert error.num_places >= SHORT
    assert found.layers[0].rounding_error is not None
    assert found.layers[0].relative_error > 4 * found.layers[0].rounding_error
