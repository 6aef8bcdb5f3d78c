from pathlib import Path

from qgate.io import scripts
from qgate.io.files import sha256_file
from qgate.ports import load_quantizer


def test_a_script_that_stands_alone_has_its_file_s_hash(tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text("import json\nfrom pathlib import Path\n")
    assert scripts.files(worker) == (worker,)
    assert scripts.sha256(worker) == sha256_file(worker)


def test_modules_beside_it_belong_to_it_and_those_that_they_import(tmp_path: Path) -> None:
    worker, near, far, other = (tmp_path / f"{name}.py" for name in ("worker", "near", "far", "other"))
    worker.write_text("import near as n\n")
    near.write_text("from far import thing\nimport worker\n")
    far.write_text("thing = 1\n")
    other.write_text("import worker\n")
    assert scripts.files(worker) == (worker, far, near)
    before = scripts.sha256(worker)
    other.write_text("changed = 1\n")
    assert scripts.sha256(worker) == before
    far.write_text("thing = 2\n")
    assert scripts.sha256(worker) != before


def test_qgate_s_own_workers_name_all_their_parts() -> None:
    parts = {file.stem for file in scripts.files(load_quantizer("autogptq").worker)}
    assert parts == {"autogptq_quantize", "quantize_frame", "quantize_output", "transformers4_view", "worker_frame"}
