from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from qgate.ports import QuantizeJob
from qgate.quantizers.noise import QUANTIZER, Options


def test_the_worker_is_told_level_seed_and_what_to_leave(tmp_path: Path) -> None:
    chosen = Options(level=0.2, seed=7, ignore=("lm_head", "re:.*gate"))
    job = QuantizeJob(
        model=tmp_path / "model",
        output=tmp_path / "out",
        options=chosen,
        dtype="float16",
        calibration_file=None,
        sequence_length=512,
        seed=0,
        work=tmp_path,
    )
    assert QUANTIZER.request(job) == {
        "model": str(tmp_path / "model"),
        "output": str(tmp_path / "out"),
        "level": 0.2,
        "seed": 7,
        "ignore": ["lm_head", "re:.*gate"],
    }


@pytest.mark.parametrize("precision", ["FP16", "BF16"])
def test_the_precision_stays_the_models(precision: Any) -> None:
    chosen = Options(precision=precision)
    assert QUANTIZER.precision(chosen) == precision
    assert QUANTIZER.group_size(chosen) is None
    assert not QUANTIZER.needs_calibration(chosen)
    assert QUANTIZER.ignored(chosen) == ("lm_head",)


@pytest.mark.parametrize("level", [0.0, -0.1, 11.0, float("nan")])
def test_a_level_that_is_no_damage_is_refused(level: float) -> None:
    with pytest.raises(ValidationError):
        Options(level=level)
