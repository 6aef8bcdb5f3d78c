"""AWQ and GPTQ checkpoints that the real packages saved, read by the transformers engine without those packages.

Uses the locked environment `llmcompressor`; the checkpoints and what their packages unpack are in tests/golden/checkpoints.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from qgate.engines.transformers import WORKERS
from qgate.io import proc
from tests.tools import tool_or_skip

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
CHECKPOINTS = Path(__file__).parents[1] / "golden" / "checkpoints"


def _method(folder: Path) -> str:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())["quantization_config"]
    return str(config["quant_method"])


FORMATS = sorted(
    file.parent.name
    for file in CHECKPOINTS.glob("*/dequantized.json")
    if _method(file.parent) in {"awq", "gptq"} and file.parent.name != "awq-gemm-corrupted"
)
"""compressed-tensors' own formats are read by its library, and the corrupted one is no rounding of the baseline."""


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    tool = tool_or_skip("llmcompressor")
    work = tmp_path_factory.mktemp("packed")
    request = {"workers": str(WORKERS), "checkpoints": str(CHECKPOINTS), "formats": FORMATS, "scratch": str(work)}
    script = Path(__file__).with_name("packed_check.py")
    return proc.run_worker(tool.python, script, request, work=work / "work", what="unpacking")


def test_the_published_formats_are_there() -> None:
    assert {"awq-gemm", "gptq-v1", "gptq-v1-desc-act", "gptqmodel-gptq-v2", "gptqmodel-awq"} <= set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_weights_are_bit_for_bit_what_their_own_package_unpacks(name: str, checked: dict[str, Any]) -> None:
    expected = json.loads((CHECKPOINTS / name / "dequantized.json").read_text())
    assert checked["half"][name] == expected
    assert checked["full"][name] == expected, "computed in float32 and rounded once"


@pytest.mark.parametrize("name", FORMATS)
def test_they_are_the_baselines_weights_but_for_rounding(name: str, checked: dict[str, Any]) -> None:
    bits = json.loads((CHECKPOINTS / name / "config.json").read_text())["quantization_config"]["bits"]
    assert 0.01 < checked["errors"][name] < {3: 0.3, 4: 0.22}[bits]


@pytest.mark.parametrize("name", FORMATS)
def test_the_engine_says_that_it_dequantized(name: str, checked: dict[str, Any]) -> None:
    assert checked["kernels"][name].startswith("14 x dequantized float32 dense")
    assert any("no quantized kernel of vLLM" in note for note in checked["notes"][name])


def test_what_it_cannot_read_is_refused_not_guessed(checked: dict[str, Any]) -> None:
    said = checked["refusals"]
    assert "version gemv" in said["version"]
    assert "layout marlin" in said["marlin"]
    assert "down_proj cannot be unpacked: KeyError: 'scales'" in said["part"]
    assert "model.norm.weight" in said["norm"]
    assert "down_proj.bias" in said["bias"]
