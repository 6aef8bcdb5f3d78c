"""`parallel: auto` with the real vLLM engine and a stand-in for its server: places and memory, from recipe to run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from qgate import pipeline
from qgate.engines import vllm_options
from qgate.io import host, recipe
from qgate.io.leases import Leases
from qgate.rooms import prepare
from qgate.schemas.answers import EngineFacts
from tests.unit.engines.test_vllm import PATH
from tests.unit.recipes import small, write, write_evalset
from tests.unit.sizing.models import SMALL, write_checkpoint
from tests.unit.test_pipeline import Watcher, item

GIB = 1 << 30


def flag(facts: EngineFacts, name: str) -> str:
    return facts.argv[facts.argv.index(name) + 1]


def test_servers_on_two_gpus_are_told_their_place_and_report_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(prepare, "Leases", lambda: Leases(tmp_path / "leases"))
    gpu = {"name": "NVIDIA H100", "memory.total": "81920 MiB", "driver_version": "580.1"}
    monkeypatch.setattr(host, "gpus", lambda: [gpu, gpu])
    monkeypatch.setattr(host, "free_gpu_memory", lambda: {0: 79 * GIB, 1: 79 * GIB})
    monkeypatch.setattr(host, "num_cores", lambda: 12)  # API servers enough for one server; three share them
    monkeypatch.setattr(vllm_options, "REQUESTS_EACH", 1)
    for number, name in enumerate(("model", "w8a8", "awq")):
        write_checkpoint(tmp_path / name, SMALL | {"eos_token_id": number})
    write_evalset(tmp_path, [item(number) for number in range(12)])
    engine = {
        "name": "vllm", "env": sys.executable, "parallel": "auto", "concurrency": 4,
        "options": {"env": {"PYTHONPATH": PATH}, "start_timeout_s": 120, "score_memory_bytes": GIB},
    }  # fmt: skip
    variants = {name: {"checkpoint": {"path": name}, "precision": name.upper()} for name in ("w8a8", "awq")}
    variants["awq"]["precision"] = "W4A16"
    written = write(tmp_path, small(engine=engine, variants=variants))
    watcher = Watcher()
    outcome = pipeline.run(recipe.load(written), tmp_path / "results", watcher)
    assert not outcome.run.failures, outcome.run.failures
    found = outcome.run.engine_facts
    assert set(found) == {"baseline", "w8a8", "awq"}
    places = {name: facts.env_vars["CUDA_VISIBLE_DEVICES"] for name, facts in found.items()}
    assert places["baseline"] == "0"
    assert set(places.values()) == {"0", "1"}
    for facts in found.values():
        assert facts.env_vars["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        assert "--api-server-count" not in facts.argv
        assert flag(facts, "--max-model-len") == "2056"
        assert int(flag(facts, "--kv-cache-memory-bytes")) == (2064 + 256) * 23_040  # more than four such requests fill
        assert facts.details["berth"]["gib"] == facts.details["ledger_gib"]["total"]
        assert float(flag(facts, "--gpu-memory-utilization")) < facts.details["berth"]["gib"] / 80
    assert any("preemptions" in finding for finding in outcome.sheet.findings)
    assert Leases(tmp_path / "leases").others() == {}
