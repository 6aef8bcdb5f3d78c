"""Headers, scales and a large tokenizer of a 1.5B model: a moment of computing, for its gigabyte is not read."""

import time
from pathlib import Path

from qgate.rooms.inspect import inspect
from tests.unit.inspection.synthetic import write


def test_a_model_of_1_5_billion_weights_takes_a_moment(tmp_path: Path) -> None:
    folder = write(tmp_path / "model")
    assert (folder / "model.safetensors").stat().st_size > 1e9
    began = time.process_time()
    found = inspect(folder)
    took = time.process_time() - began
    assert found.num_quantized_layers == 28 * 7
    (finding,) = found.findings
    assert (finding.code, finding.num_places) == ("weights-blank", 28 * 7), "its packed weights are holes"
    assert found.nominal_bits == 4
    assert took < 5.0  # a quarter of a second on an idle machine
