"""Before a server: a checkpoint with an error is refused and the run goes on; a warning is told in the report."""

import json
from pathlib import Path

import pytest

from qgate.errors import CheckpointError
from qgate.io import artefact
from qgate.schemas.inspection import Inspection
from qgate.schemas.verdict import Verdict
from tests.unit.test_pipeline import made, run, verdict_of


def change(folder: Path, **fields: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | fields))


def broken(folder: Path) -> None:
    """Packed weights that the config does not speak of: engines would take them for plain ones."""
    file = folder / "model.safetensors"
    data = file.read_bytes()
    file.write_bytes(data.replace(b'"dtype": "F16", "shape": [64, 64]', b'"dtype": "I8",  "shape": [64,128]'))


def test_a_variant_with_an_error_is_refused_and_the_others_are_judged(tmp_path: Path) -> None:
    recipe = made(tmp_path)
    broken(tmp_path / "bad")
    outcome, watcher = run(tmp_path, recipe)
    assert verdict_of(outcome, "good") is Verdict.PASS
    assert verdict_of(outcome, "bad") is not Verdict.PASS
    refusal = outcome.run.failures["bad"]
    assert "quantization-config-missing at model.layers.0.mlp.up_proj" in refusal
    assert "fix: add the quantization_config" in refusal
    assert any(note.startswith("bad: its checkpoint is refused") for note in watcher.notes)
    assert not any(arm.variant == "bad" and arm.step == "generate" for arm in outcome.run.arms), "nothing was served"


def test_a_baseline_with_an_error_ends_the_run(tmp_path: Path) -> None:
    recipe = made(tmp_path)
    broken(tmp_path / "model")
    with pytest.raises(CheckpointError, match="baseline: its checkpoint is refused"):
        run(tmp_path, recipe)


def test_warnings_are_findings_of_the_run_and_inspections_lie_beside_it(tmp_path: Path) -> None:
    recipe = made(tmp_path)
    change(tmp_path / "model", hidden_act="silu")
    change(tmp_path / "good", hidden_act="gelu")
    outcome, _ = run(tmp_path, recipe)
    told = [finding for finding in outcome.sheet.findings if finding.startswith("good: config-differs")]
    assert len(told) == 1
    assert told[0].startswith(
        "good: config-differs at config.json: hidden_act: hidden_act is gelu, the baseline's is silu"
    )
    assert told[0] in (outcome.folder / "summary.md").read_text()
    assert verdict_of(outcome, "good") is Verdict.PASS, "what an engine takes, the gate measures"
    found = artefact.load(outcome.folder / "inspections" / "good.json", Inspection)
    assert (found.name, found.compared_with) == ("good", "model")
    assert str(tmp_path) not in (outcome.folder / "inspections" / "good.json").read_text()


def test_a_warning_of_several_checkpoints_is_one_finding(tmp_path: Path) -> None:
    recipe = made(tmp_path)
    change(tmp_path / "good", hidden_act="gelu")
    change(tmp_path / "bad", hidden_act="gelu")
    change(tmp_path / "model", hidden_act="silu")
    outcome, _ = run(tmp_path, recipe)
    told = [finding for finding in outcome.sheet.findings if "config-differs" in finding]
    assert [finding.partition(":")[0] for finding in told] == ["bad, good"]
