"""The transformers engine against a worker without a model: the mailbox, its faults, and what is left behind."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from pydantic import ValidationError

from qgate.engines import transformers
from qgate.engines.transformers import ENGINE, Options
from qgate.errors import DiedError, EngineError, HungError, StartError
from qgate.io import host
from qgate.ports import Engine, ServeJob, Tool, load_engine
from qgate.schemas.answers import GenerateRequest, Sampling, ScoreRequest
from qgate.schemas.evalset import Message
from tests.processes import PATIENCE_S, is_alive, wait_for

STUB = Path(__file__).with_name("transformers_stub.py")
MESSAGES = (Message(role="user", content="Hello"),)
SAMPLING = Sampling(
    temperature=0.8, top_p=0.9, top_k=20, min_p=0.1, repetition_penalty=1.1, presence_penalty=0.2,
    frequency_penalty=0.3, max_tokens=8, seed=7,
)  # fmt: skip


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers, "ENTRY", STUB)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """Scratch folder of a worker; afterwards neither it nor what it started may run."""
    (tmp_path / "work").mkdir()
    yield tmp_path / "work"
    wait_for(lambda: not running(tmp_path / "work"))  # a process that got SIGKILL takes a moment to go


def running(work: Path) -> list[int]:
    """Of the worker and its helper, those that still run: a zombie that its new parent has not reaped does not."""
    if not (work / "pids").exists():
        return []
    alive = {process.pid for process in psutil.process_iter() if is_alive(process)}
    return [pid for pid in map(int, (work / "pids").read_text().split()) if pid in alive]


def job(work: Path, fault: str = "none", *, stall_timeout_s: float = PATIENCE_S, **options: object) -> ServeJob:
    return ServeJob(
        checkpoint=work / fault, name="w8a8", dtype="bfloat16", options=Options.model_validate(options),
        tool=Tool(Path(sys.executable), "none"), concurrency=12, request_timeout_s=33.0,
        stall_timeout_s=stall_timeout_s, repeatable=False, max_model_len=None, log=work / "worker.log", work=work,
    )  # fmt: skip


def requests(num: int) -> list[GenerateRequest]:
    return [GenerateRequest(id=f"set/{index}/warm/7", messages=MESSAGES, sampling=SAMPLING) for index in range(num)]


def test_it_is_the_registered_engine_and_names_every_worker_file() -> None:
    assert load_engine("transformers") is ENGINE
    assert isinstance(ENGINE, Engine)
    assert {path.name for path in ENGINE.workers} == {
        path.name for path in (Path(transformers.__file__).parents[1] / "workers").glob("transformers_*.py")
    }


def test_answers_come_one_per_request_and_jobs_follow_each_other(work: Path) -> None:
    with ENGINE.open(job(work)) as session:
        assert (session.facts.engine, session.facts.version, session.facts.notes) == (
            "transformers",
            "0",
            ("no model",),
        )
        assert [answer.id for answer in session.generate(requests(3))] == [request.id for request in requests(3)]
        assert [answer.text for answer in session.generate(requests(2))] == ["你好", "你好"]
        assert list(session.generate([])) == []


def test_every_sampling_field_and_limit_reaches_the_worker(work: Path) -> None:
    with ENGINE.open(job(work, batch_size=None, threads=1, cache_gib=0.5)) as session:
        list(session.generate(requests(1)))
    setup = json.loads((work / "setup.json").read_text())
    assert (setup["batch_size"], setup["dtype"], setup["request_timeout_s"]) == (12, "auto:bfloat16", 33.0)
    assert (setup["threads"], setup["cache_bytes"]) == (1, 1 << 29)
    asked = json.loads((work / "0001.request.jsonl").read_text().splitlines()[1])
    assert asked["sampling"] == SAMPLING.model_dump()
    assert asked["messages"] == [{"role": "user", "content": "Hello"}]


def test_a_line_that_arrives_in_parts_is_one_answer(work: Path) -> None:
    with ENGINE.open(job(work, "halves")) as session:
        assert [answer.text for answer in session.generate(requests(2))] == ["你好", "你好"]


def test_scores_keep_what_is_not_finite(work: Path) -> None:
    wanted = ScoreRequest(id="a", messages=MESSAGES, completion_ids=(4, 5, 6), top_k=1)
    with ENGINE.open(job(work)) as session:
        (scores,) = session.score([wanted])
    assert scores.logprobs.dtype == np.float32
    assert np.isnan(scores.logprobs).all()
    assert scores.top_ids.tolist() == [[4], [5], [6]]
    assert scores.top_logprobs.shape == (3, 1)


def test_a_score_that_does_not_fit_names_the_request(work: Path) -> None:
    wanted = ScoreRequest(id="long/1", messages=MESSAGES, completion_ids=(4,))
    with ENGINE.open(job(work, "unfit")) as session, pytest.raises(EngineError, match=r"long/1.*context is 8192"):
        list(session.score([wanted]))


def test_a_text_has_the_worker_s_tokens(work: Path) -> None:
    wanted = ScoreRequest(id="a", messages=MESSAGES, completion="Yes.", top_k=1)
    with ENGINE.open(job(work)) as session:
        (scores,) = session.score([wanted])
    assert scores.token_ids.tolist() == list(b"Yes.")
    assert scores.top_ids.shape == (4, 1)


def test_a_text_that_does_not_fit_has_no_scores(work: Path) -> None:
    wanted = ScoreRequest(id="a", messages=MESSAGES, completion="Yes.", top_k=1)
    with ENGINE.open(job(work, "unfit")) as session:
        (scores,) = session.score([wanted])
    assert scores.id == "a"
    assert scores.token_ids.size == scores.logprobs.size == 0


def test_a_worker_that_dies_keeps_what_it_answered_and_says_why(work: Path) -> None:
    with ENGINE.open(job(work, "dies")) as session:
        answers = session.generate(requests(3))
        assert next(answers).id == "set/0/warm/7"
        with pytest.raises(DiedError, match=r"(?s)worker of w8a8 was ended by SIGKILL.*no memory left"):
            next(answers)
        with pytest.raises(DiedError):
            list(session.generate(requests(1)))


def test_a_worker_that_hangs_is_given_up_and_stopped(work: Path) -> None:
    with ENGINE.open(job(work, "hangs", stall_timeout_s=2)) as session:
        answers = session.generate(requests(3))
        next(answers)
        with pytest.raises(HungError, match="no progress for 2 s"):
            next(answers)


def test_beats_are_progress(work: Path) -> None:
    with ENGINE.open(job(work, "slow", stall_timeout_s=2)) as session:
        assert len(list(session.generate(requests(2)))) == 2


def test_a_job_that_breaks_leaves_the_worker_usable(work: Path) -> None:
    with ENGINE.open(job(work, "breaks")) as session:
        with pytest.raises(EngineError, match="ValueError: no such thing"):
            list(session.generate(requests(2)))
        assert len(list(session.generate(requests(1)))) == 1


def test_a_missing_answer_is_an_error(work: Path) -> None:
    with ENGINE.open(job(work, "forgets")) as session, pytest.raises(EngineError, match="2 answers to 3 requests"):
        list(session.generate(requests(3)))


def test_a_job_that_nobody_reads_is_cancelled(work: Path) -> None:
    with ENGINE.open(job(work, "patient")) as session:
        answers = session.generate(requests(1000))  # 200 s of work
        next(answers)
        answers.close()  # type: ignore[attr-defined]
        assert len(list(session.generate(requests(1)))) == 1
    assert len((work / "0001.answers.jsonl").read_text(encoding="utf-8").splitlines()) < 1000


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_interruption_stops_the_whole_group(work: Path, raised: type[BaseException]) -> None:
    def interrupted() -> None:
        with ENGINE.open(job(work, "patient")) as session:
            next(session.generate(requests(3)))
            assert len(running(work)) == 2
            raise raised

    with pytest.raises(raised):
        interrupted()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("refuses", "worker of w8a8: OSError: no config.json"),
        ("crashes", "(?s)exited with 1.*it went wrong here"),
        ("never", "was not ready after 0 s"),
    ],
)
def test_a_worker_that_does_not_start_says_why(work: Path, fault: str, said: str) -> None:
    with (
        pytest.raises(StartError, match=said),
        ENGINE.open(job(work, fault, start_timeout_s=0.4 if fault == "never" else PATIENCE_S)),
    ):
        pass


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValidationError, match="batchsize"):
        Options.model_validate({"batchsize": 3})


def test_the_device_is_the_cpu_where_torch_has_no_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lib" / "python3.11" / "site-packages" / "torch"
    package.mkdir(parents=True)
    monkeypatch.setattr(host.proc, "output", lambda argv: "NVIDIA H200, 143771 MiB, 580.1\n" * 2)
    tool = Tool(tmp_path / "bin" / "python", "none")
    (package / "version.py").write_text("cuda: Optional[str] = None\n")
    assert ENGINE.device(tool) != "NVIDIA H200"
    (package / "version.py").write_text("cuda: Optional[str] = '12.8'\n")
    assert ENGINE.device(tool) == "NVIDIA H200"
