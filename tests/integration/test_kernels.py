"""The table of kernels against vLLM's own choice, asked of its code with GPUs that are only pretended.

Uses vLLM for CPUs (0.32), which has the same Python; half a minute. AllSpark is in 0.26 alone and left out here.
"""

import itertools
import json
import subprocess
from pathlib import Path

import pytest

from qgate.inspection import kernels
from qgate.inspection.kernels import Shape, choose
from qgate.inspection.scheme import Scheme
from qgate.ports import Tool

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
SIZES = [(4096, 4096), (960, 576), (576, 1536), (4036, 4096), (4096, 4080), (100, 64)]
GRID = list(
    itertools.product(SIZES, [4, 8], [True, False], [None, 16, 32, 64, 128, 256], [True, False], [75, 80, 89, 90])
)


def test_every_choice_is_vllms_own(vllm_tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(kernels.KERNELS, "AllSparkLinearKernel")
    names = ("bits", "symmetric", "group_size", "half", "capability")
    cases = [{"rows": size[0], "columns": size[1]} | dict(zip(names, rest, strict=True)) for size, *rest in GRID]
    (tmp_path / "request.json").write_text(json.dumps(cases))
    script = Path(__file__).with_name("vllm_kernels.py")
    subprocess.run([vllm_tool.python, script, tmp_path / "request.json", tmp_path / "result.json"], check=True)
    theirs = json.loads((tmp_path / "result.json").read_text())
    differing = []
    for case, kernel in zip(cases, theirs, strict=True):
        scheme = Scheme(
            "compressed-tensors", "pack-quantized", case["bits"], group_size=case["group_size"],
            is_symmetric=case["symmetric"],
        )  # fmt: skip
        choice = choose(Shape(case["rows"], case["columns"], case["columns"], scheme, case["half"]), case["capability"])
        assert choice is not None
        if choice.kernel != kernel:
            differing.append((case, kernel, choice))
    assert differing == []
    assert len(set(theirs)) >= 4
