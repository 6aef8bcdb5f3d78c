"""The memory ledger against the GPU: what a server reports, what its processes take, and a run that places by it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from qgate.engines import vllm_size
from qgate.engines.vllm import ENGINE
from qgate.io import artefact, checkpoint, proc
from qgate.ports import Tool
from qgate.schemas.run import Run
from qgate.sizing import placement
from qgate.sizing.cache import cache_shape
from qgate.sizing.reported import differences
from tests.gpu.serving import GIB, SMALL, family, requests, serve_job
from tests.gpu.weights import Tensors, harmed

ROOT = Path(__file__).parents[2]
MAKER = Path(__file__).parent / "make_random.py"
pytestmark = pytest.mark.gpu
RESTLESS = """
import time, torch
while True:
    held = torch.empty(6 << 30, dtype=torch.uint8, device="cuda")
    print("held", flush=True)
    time.sleep(0.7)
    del held
    torch.cuda.empty_cache()
    time.sleep(0.7)
"""


def memory_of(pids: set[int]) -> int:
    """Bytes of GPU memory that these processes hold, as the driver counts them."""
    listed = proc.output(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]) or ""
    rows = [line.split(", ") for line in listed.strip().splitlines()]
    return sum(int(used) << 20 for pid, used in rows if int(pid) in pids and used.isdigit())


@pytest.mark.parametrize(
    ("form", "eager"), [("fp16", True), ("w8a8", False), ("w4a16", True), ("awq", True), ("gptq", True)]
)
def test_a_server_takes_what_the_ledger_says(
    tmp_path: Path, vllm_tool: Tool, demo_model: Path, form: str, *, eager: bool
) -> None:
    model, before = tmp_path / "model", family()
    made = [vllm_tool.python, MAKER, "--shape", "small", "--format", form, "--tokenizer", demo_model, "--output", model]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    device = ENGINE.devices(vllm_tool)[0]
    options = {"kv_cache_memory_bytes": None, "enforce_eager": eager}
    job = serve_job(tmp_path / "w", vllm_tool, model, options=options, name=form, lengths=(600,) * 32)
    ledger = ENGINE.size(job, vllm_size.stored_model(job), device)
    berth = placement.berth([device], {}, ledger.need(form))
    assert berth is not None
    with ENGINE.open(replace(job, berth=berth)) as session:
        assert len(list(session.generate(requests(32, max_tokens=64)))) == 32
        taken, facts = memory_of(family() - before), session.facts
    shape = cache_shape(checkpoint.read_config(model), kv_dtype="auto", tensor_parallel=1)
    found = differences(ledger, shape, facts.details)
    assert {entry.what for entry in found} >= {"weights", "what the KV cache holds"}
    assert not [str(entry) for entry in found if entry.is_large]
    assert facts.details["kv_cache_gib"] == pytest.approx(berth.kv_bytes / GIB, abs=0.02)
    assert taken <= ledger.total, f"{taken / GIB:.2f} GiB taken, {ledger.in_gib()}"


@contextmanager
def restless_neighbour(tool: Tool) -> Iterator[None]:
    """A process that takes and frees 6 GiB of the GPU again and again."""
    with subprocess.Popen([tool.python, "-c", RESTLESS], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        yield
        assert child.poll() is None
        child.kill()


def test_a_neighbour_that_frees_memory_does_not_kill_a_server_that_starts(
    tmp_path: Path, vllm_tool: Tool, demo_model: Path
) -> None:
    """In a berth the KV cache has a size: vLLM measures nothing, and cannot take fright when the free memory grows."""
    device = ENGINE.devices(vllm_tool)[0]
    job = serve_job(tmp_path / "w", vllm_tool, demo_model, options={"kv_cache_memory_bytes": None}, lengths=(600,) * 16)
    ledger = ENGINE.size(job, vllm_size.stored_model(job), device)
    berth = placement.berth([device], {}, ledger.need("baseline"))
    with restless_neighbour(vllm_tool), ENGINE.open(replace(job, berth=berth)) as session:
        assert len(list(session.generate(requests(2)))) == 2


def test_a_run_places_its_servers_by_the_ledger(tmp_path: Path, vllm_tool: Tool, demo_model: Path) -> None:
    def other(tensors: Tensors) -> None:
        dtype, shape, data = tensors["model.norm.weight"]
        tensors["model.norm.weight"] = (dtype, shape, data[2:4] + data[2:])

    options = {name: value for name, value in SMALL.items() if name != "kv_cache_memory_bytes"}
    recipe = {
        "qgate": 1,
        "name": "placed",
        "model": {"path": str(demo_model)},
        "variants": {"other": {"checkpoint": {"path": str(harmed(demo_model, tmp_path / "other", other))}}},
        "engine": {"name": "vllm", "env": str(vllm_tool.python), "parallel": "auto", "options": options},
        "evalsets": [{"name": "instruction@1", "limit": 12}],
        "sampling": {"greedy": {"temperature": 0, "max_tokens": 48, "seeds": [0]}},
        "token_evidence": {"max_items": 6},
        "tiers": {
            "chat": {"default": "other", "allow": ["other"], "criteria": [{"metric": "score_loss", "margin": 0.1}]}
        },
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    argv = [sys.executable, "-m", "qgate", "run", str(tmp_path / "recipe.yaml"), "--results", str(tmp_path / "results")]
    done = subprocess.run(argv, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode in {0, 1, 3}, done.stdout + done.stderr
    (written,) = (tmp_path / "results" / "runs").glob("*/run.json")
    run = artefact.load(written, Run)
    assert not run.failures
    here = [ENGINE.devices(vllm_tool)[0].index]
    for facts in run.engine_facts.values():
        assert facts.details["berth"]["devices"] == here
        assert facts.details["berth"]["gib"] < 20
        assert facts.details["preemptions"] == 0
        assert not [note for note in facts.notes if "the ledger has" in note]
