"""`qgate inspect`: its exit codes, what it prints, and the artefact as it is stored."""

import json
import shutil
from pathlib import Path

import pytest

from qgate import cli
from qgate.errors import ExitCode
from qgate.io import artefact
from qgate.rooms.inspect import inspect, tensor_parallel
from qgate.schemas.inspection import Inspection
from tests.unit.inspection.planting import BASELINE, FIXTURES

GOLDEN = Path(__file__).parents[2] / "golden" / "artefacts" / "inspection-1.json"


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = cli.main(["inspect", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_a_clean_checkpoint_passes_and_shows_kernels_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, FIXTURES / "pack-quantized", "--baseline", BASELINE)
    assert code == ExitCode.PASS
    assert "nothing found (looked at headers, scales, tokenizer, config, weights)" in " ".join(text.split())
    assert "Marlin" in text
    assert "14 quantized layers" in text


def test_warnings_pass_and_errors_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, FIXTURES / "gptq-v1-desc-act")
    assert code == ExitCode.PASS
    assert "activation-order" in text
    assert "1 warning" in text
    code, text = said(capsys, FIXTURES / "awq-gemm-corrupted", "--baseline", BASELINE)
    assert code == ExitCode.FAIL
    assert "weight-error" in text
    code, _ = said(capsys, FIXTURES / "awq-gemm-corrupted", "--baseline", BASELINE, "--no-weights")
    assert code == ExitCode.PASS


def test_what_is_no_checkpoint_is_the_callers_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([tmp_path / "none"], [tmp_path], [FIXTURES / "awq-gemm", "--tensor-parallel-size", 0]):
        code, text = said(capsys, *arguments)
        assert code == ExitCode.USER_ERROR
        assert "fix:" in text


def test_names_from_a_checkpoint_cannot_act_on_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(FIXTURES / "int-quantized", folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "\x1b[31mred[/bold]"}}))
    _, text = said(capsys, folder)
    assert "\x1b[31m" not in text
    assert "[/bold]" in text


def test_the_artefact_is_the_golden_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(
        capsys, FIXTURES / "gptq-v1-desc-act", "--baseline", BASELINE, "--json", "--tensor-parallel-size", 4
    )
    assert code == ExitCode.FAIL, "32 columns a device are less than a group"
    found, golden = json.loads(text), json.loads(GOLDEN.read_text())
    for side in (found, golden):
        for layer in side["layers"]:  # the last bits of a float sum differ between machines
            for key in ("relative_error", "raw_relative_error", "rounding_error", "cosine"):
                layer[key] = round(layer[key], 5)
            layer["worst_rows"] = [[row, round(error, 4)] for row, error in layer["worst_rows"]]
    assert found == golden
    assert artefact.load(GOLDEN, Inspection).errors


def test_tensor_parallelism_alone() -> None:
    assert [finding.code for finding in tensor_parallel(FIXTURES / "gptq-v1", 2)] == []
    assert [finding.code for finding in tensor_parallel(FIXTURES / "gptq-v1", 4)] == ["group-split"]
    assert inspect(FIXTURES / "gptq-v1", tensor_parallel_size=4).errors
