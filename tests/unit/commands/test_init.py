"""`qgate init`: what it writes is a recipe that finds all it names."""

from pathlib import Path

import pytest

from qgate.cli import main
from qgate.errors import ExitCode
from qgate.io import recipe
from qgate.rooms import calibration


def test_a_starter_finds_its_calibration_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "recipe.yaml"
    assert main(["init", str(path)]) == ExitCode.PASS
    wanted = [variant.calibration for variant in recipe.load(path).recipe.variants.values() if variant.calibration]
    assert wanted
    for each in wanted:
        assert each.file is not None
        assert len(calibration.read(each.file)) >= each.num_samples
    assert capsys.readouterr().err.endswith(f"; next: qgate plan {path}\n")


def test_what_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, texts = tmp_path / "recipe.yaml", tmp_path / "calibration.jsonl"
    texts.write_text("mine")
    assert main(["init", str(path)]) == ExitCode.PASS
    assert texts.read_text() == "mine"
    assert main(["init", str(path)]) == ExitCode.USER_ERROR
    assert "exists already" in capsys.readouterr().err


def test_without_a_file_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == ExitCode.PASS
    assert "\nqgate: 1\n" in capsys.readouterr().out
