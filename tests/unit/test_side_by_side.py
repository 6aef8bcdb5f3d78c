"""`parallel: auto` on the fake engine with GPUs: servers share what there is, and the verdict is that of one at a time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from qgate.errors import CheckpointError, DiedError, ExitCode
from qgate.io import proc
from qgate.io.leases import Leases
from qgate.ports import ServeJob, Session
from qgate.rooms import prepare
from qgate.sizing.placement import Device
from tests.unit import test_pipeline
from tests.unit.sized import SizedFake, gpu
from tests.unit.test_pipeline import Watcher, made, run, verdict_of


def placed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, engine: SizedFake, parallel: str | int = "auto", **changes: Any
) -> tuple[Any, Any]:
    monkeypatch.setattr(prepare, "load_engine", lambda name: engine)
    monkeypatch.setattr(prepare, "Leases", lambda: Leases(folder / "leases"))
    folder.mkdir(exist_ok=True)
    spec = {"name": "fake", "parallel": parallel, "options": {"latency_s": 0.002}}
    return run(folder, made(folder, engine=spec, **changes))


def test_servers_share_a_gpu_that_holds_them_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SizedFake((gpu(80),), {})
    outcome, _ = placed(tmp_path, monkeypatch, engine)
    assert max(map(len, engine.together)) == 3
    assert outcome.sheet.exit_code is ExitCode.PASS
    assert (verdict_of(outcome, "good").value, verdict_of(outcome, "bad").value) == ("PASS", "FAIL")
    assert all(job.berth is not None and job.berth.kv_bytes == 2 << 30 for job in engine.jobs)


def test_variants_take_turns_where_only_one_fits_beside_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SizedFake((gpu(20),), {"baseline": 5, "good": 6, "bad": 6})
    outcome, watcher = placed(tmp_path, monkeypatch, engine)
    assert {frozenset({"baseline", "good"}), frozenset({"baseline", "bad"})} <= set(engine.together)
    assert max(map(len, engine.together)) == 2
    assert any("waiting for room on a GPU" in note for note in watcher.notes)
    assert verdict_of(outcome, "bad").value == "FAIL"


def test_one_at_a_time_where_no_two_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SizedFake((gpu(10),), {"baseline": 5, "good": 5, "bad": 5})
    floor = {"replicates": 1, "concurrency": 2}
    outcome, watcher = placed(tmp_path, monkeypatch, engine, noise_floor=floor)
    assert max(map(len, engine.together)) == 1
    assert "no GPU here holds two servers at once: one checkpoint is served at a time" in watcher.notes
    assert verdict_of(outcome, "good").value == "PASS"


def test_servers_spread_over_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SizedFake((gpu(10, 0), gpu(10, 1), gpu(10, 2)), {"baseline": 5, "good": 5, "bad": 5})
    placed(tmp_path, monkeypatch, engine)
    assert max(map(len, engine.together)) == 3
    assert {job.berth.devices for job in engine.jobs if job.berth} == {(0,), (1,), (2,)}


def test_a_variant_that_fits_nowhere_is_inconclusive_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SizedFake((gpu(10),), {"baseline": 5, "good": 5, "bad": 50})
    outcome, _ = placed(tmp_path, monkeypatch, engine)
    assert "the server of bad needs 51.0 GiB on a GPU at least" in outcome.run.failures["bad"]
    assert verdict_of(outcome, "bad").value == "INCONCLUSIVE"
    assert verdict_of(outcome, "good").value == "PASS"


def test_auto_without_a_gpu_serves_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SizedFake((), {})
    outcome, _ = placed(tmp_path, monkeypatch, engine)
    assert max(map(len, engine.together)) == 1
    assert outcome.sheet.exit_code is ExitCode.PASS


def test_the_job_says_how_long_its_requests_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SizedFake((gpu(80),), {})
    placed(tmp_path, monkeypatch, engine)
    job = engine.jobs[0]
    assert job.max_model_len == 2048
    assert len(job.lengths) == job.concurrency == 16
    assert all(160 < length < 400 for length in job.lengths)


@pytest.mark.parametrize(
    ("parallel", "devices", "together"),
    [("auto", (gpu(80),), 3), ("auto", (gpu(5),), 1), ("auto", (), 1), (1, (), 1), (2, (), 2), (8, (), 3)],
)
def test_the_job_says_how_many_servers_share_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallel: str | int, devices: tuple[Device, ...], together: int
) -> None:
    engine = SizedFake(devices, {})
    placed(tmp_path, monkeypatch, engine, parallel)
    assert {job.most_together for job in engine.jobs} == {together}


class Interrupted(SizedFake):
    """Ctrl-C while the baseline answers; a variant's server then ends under the requests that it has, or answers them
    where it is not qgate's to stop (`attached`)."""

    def __init__(self, *, attached: bool = False) -> None:
        super().__init__((gpu(80),), {})
        self.calls: list[str] = []
        self._attached = attached
        self._variants_asked = threading.Event()

    @contextmanager
    def open(self, job: ServeJob) -> Iterator[Session]:
        with super().open(job) as session:
            whole = session.generate

            def generate(requests: Any) -> Iterator[Any]:
                self.calls.append(job.name)
                if job.name == "baseline":
                    assert self._variants_asked.wait(60)
                    raise KeyboardInterrupt
                self._variants_asked.set()
                while not proc.stopping():
                    time.sleep(0.01)
                if not self._attached:
                    raise DiedError(f"the server of {job.name} is gone", advice="look at its log")
                yield from whole(requests)

            cast("Any", session).generate = generate
            yield session


def test_an_interrupt_blames_no_server_that_it_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = Watcher()
    monkeypatch.setattr(test_pipeline, "Watcher", lambda: watcher)
    with pytest.raises(KeyboardInterrupt):
        placed(tmp_path, monkeypatch, Interrupted())
    assert not watcher.notes


def test_after_an_interrupt_no_further_step_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Interrupted(attached=True)
    profiles = {
        name: {"temperature": 0, "max_tokens": length, "seeds": [0]} for name, length in (("a", 160), ("b", 80))
    }
    with pytest.raises(KeyboardInterrupt):
        placed(tmp_path, monkeypatch, engine, sampling=profiles)
    assert len(engine.calls) == len(set(engine.calls)) > 1


def test_a_split_that_cannot_work_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SizedFake((gpu(80),), {}, split=(1, 3))
    made(tmp_path)
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"num_hidden_layers": 1, "num_attention_heads": 1}))
    with pytest.raises(CheckpointError, match="baseline: pipeline_parallel_size 3 is more than the 1 layers"):
        placed(tmp_path, monkeypatch, engine)
    assert not engine.jobs


def test_a_split_that_cannot_be_told_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SizedFake((gpu(80),), {}, split=(2, 1))
    with pytest.raises(CheckpointError, match=r"baseline cannot be split: config\.json has no num_attention_heads"):
        placed(tmp_path, monkeypatch, engine)
