"""What `qgate plan` says of memory: every server's ledger and place, and what does not fit with the knob."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from qgate.commands import plan_memory
from qgate.engines import fake
from qgate.engines.vllm import ENGINE
from qgate.errors import CheckpointError, UserError
from qgate.io import recipe
from qgate.ports import NO_TOOL
from qgate.rooms import prepare
from qgate.rooms.forecast import Forecast, forecast
from qgate.rooms.prepare import Prepared
from qgate.sizing.ledger import GIB
from qgate.sizing.placement import Device
from tests.unit.recipes import small, write, write_evalset
from tests.unit.sized import gpu
from tests.unit.sizing.models import SMALL, write_checkpoint
from tests.unit.test_pipeline import Watcher, item

GROUPED = {
    "quant_method": "compressed-tensors",
    "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 128}}},
}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "load_engine", lambda name: ENGINE)
    monkeypatch.setattr(type(ENGINE), "device", lambda self, tool: "NVIDIA H200")
    monkeypatch.setattr(type(ENGINE), "devices", lambda self, tool: ())


def prepared(folder: Path, **changes: Any) -> Prepared:
    write_checkpoint(folder / "model")
    write_checkpoint(folder / "w8a8", SMALL | {"quantization_config": changes.pop("quantization", None)})
    write_evalset(folder, [item(number) for number in range(60)])
    spec = {"name": "vllm", "parallel": "auto", "concurrency": 32, **changes.pop("engine", {})}
    loaded = recipe.load(write(folder, small(engine=spec, **changes)))
    return prepare.prepare(loaded, folder / "results", Watcher(), lambda spec: NO_TOOL)


def drawn(found: Forecast, devices: Sequence[Device]) -> str:
    console = Console(file=StringIO(), width=160)
    plan_memory.show(console, found, devices)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_every_server_has_its_ledger_and_its_gpu(tmp_path: Path) -> None:
    found = forecast(prepared(tmp_path), [gpu(80, 0), gpu(80, 1)])
    assert [(row.name, row.place) for row in found.rows] == [("baseline", "GPU 0"), ("w8a8", "GPU 1")]
    assert found.rows[0].ledger.weights == 2 * 134_515_008
    assert found.warnings == ()
    said = drawn(found, [gpu(80, 0), gpu(80, 1)])
    assert "GPU 1: NVIDIA H200, 80.0 of 80.0 GiB free" in said
    assert "0.25" in said


def test_the_second_server_of_the_baseline_is_shown(tmp_path: Path) -> None:
    found = forecast(prepared(tmp_path, noise_floor={"replicates": 1, "concurrency": 4}), [gpu(80)])
    assert [row.name for row in found.rows] == ["baseline", "baseline at 4 requests", "w8a8"]


def test_a_server_that_is_too_large_is_told_with_the_knob(tmp_path: Path) -> None:
    (warning,) = {w.replace("w8a8", "baseline") for w in forecast(prepared(tmp_path), [gpu(2)]).warnings}
    assert "baseline does not fit: it needs" in warning
    assert "tensor_parallel_size" in warning


def test_a_kv_cache_that_is_cut_is_told(tmp_path: Path) -> None:
    bounds = {"max_num_batched_tokens": 1024, "max_num_seqs": 64, "score_memory_bytes": 64 << 20}
    ready = prepared(tmp_path, engine={"options": bounds})
    fixed = forecast(ready, [gpu(80)]).rows[0].ledger.fixed
    found = forecast(ready, [gpu((fixed / GIB + 0.1) / 0.97)])
    assert "requests may be preempted" in found.warnings[0]


def test_a_fixed_number_of_servers_that_one_gpu_does_not_hold_is_told(tmp_path: Path) -> None:
    ready = prepared(tmp_path, engine={"parallel": 2, "options": {"kv_cache_memory_bytes": 6 * GIB}})
    assert forecast(ready, [gpu(80)]).warnings == ()
    (warning,) = forecast(ready, [gpu(14)]).warnings
    assert warning.startswith("engine.parallel 2: the 2 largest servers take")


def test_without_a_gpu_the_ledger_is_shown_all_the_same(tmp_path: Path) -> None:
    found = forecast(prepared(tmp_path), [])
    assert len(found.rows) == 2
    assert "--gpu-memory 80GiB" in found.warnings[0]
    assert "weights" in drawn(found, [])


def test_tensor_parallelism_through_groups_is_refused(tmp_path: Path) -> None:
    ready = prepared(tmp_path, quantization=GROUPED, engine={"options": {"tensor_parallel_size": 3}})
    with pytest.raises(CheckpointError, match=r"w8a8: .*cuts through groups of 128: 576/3 = 192 columns") as error:
        forecast(ready, [gpu(80)])
    assert error.value.advice == "tensor_parallel_size may be 1"


def test_another_engine_has_nothing_to_say(tmp_path: Path) -> None:
    assert forecast(replace(prepared(tmp_path), engine=fake.ENGINE), [gpu(80)]) == Forecast((), ())


@pytest.mark.parametrize(("said", "size"), [("80GiB", 80 << 30), ("24", 24 << 30), ("141 GB", 141 * 10**9)])
def test_sizes_as_people_write_them(said: str, size: int) -> None:
    assert [one.total_bytes for one in plan_memory.devices_like(said, 2)] == [size, size]


@pytest.mark.parametrize("said", ["big", "80 TiB", "", "1.2.3GiB", "0GiB"])
def test_what_is_no_size_is_refused(said: str) -> None:
    with pytest.raises(UserError, match="is no size of a GPU"):
        plan_memory.devices_like(said, 1)


def test_the_context_follows_the_sets_and_is_in_the_key(tmp_path: Path) -> None:
    ready = prepared(tmp_path)
    assert ready.context == 2048
    assert ready.identity("w8a8", 32).max_model_len == 2048
    assert json.loads((tmp_path / "model" / "config.json").read_text())["max_position_embeddings"] == 8192
