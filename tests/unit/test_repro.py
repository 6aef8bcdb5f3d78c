"""`qgate repro` from end to end on the fake engine and on stub servers: each cause, and what is left behind."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qgate import repro
from qgate.commands.progress import QuietWatcher
from qgate.engines.fake import FakeSession
from qgate.engines.fake_model import garble
from qgate.errors import DiedError, EngineError
from qgate.io import artefact, incident
from qgate.io.store import Store
from qgate.judge import suspects
from qgate.ports import Task
from qgate.schemas.answers import Answer, GenerateRequest
from qgate.schemas.repro import Repro
from tests.http_stub import HttpStub, Request
from tests.processes import PATIENCE_S
from tests.unit.tiny_checkpoint import write_checkpoint

STORY = "The sky was grey. The key of the harbour is 4711. Boats came in late. What is the key of the harbour?"
GOOD_ANSWER = "The key of the harbour is 4711, and the boats came in late."


class Bench:
    """A folder with two checkpoints, and incidents about them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.candidate = write_checkpoint(root / "candidate")
        self.baseline = write_checkpoint(root / "baseline")

    def plant(self, side: str, file: str, value: object) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        (self.root / side / file).write_text(text, encoding="utf-8")

    def incident(self, **fields: Any) -> Path:
        body = {"messages": [{"role": "user", "content": STORY}], "temperature": 0.7, "max_tokens": 64}
        value: dict[str, Any] = {
            "kind": "incident", "version": 1, "title": "Garbage at the harbour", "request": {"body": body},
            "candidate": {"checkpoint": {"path": "candidate"}, "engine": "fake"},
            "baseline": {"checkpoint": {"path": "baseline"}, "engine": "fake", "options": {}},
            "reference": {"engine": "fake", "options": {"kernel": "plain"}},
        }  # fmt: skip
        for name, more in fields.items():
            value[name] = {**value[name], **more} if isinstance(value.get(name), dict) and more is not None else more
        path = self.root / "incident.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    def run(self, path: Path | None = None, **wishes: Any) -> Repro:
        loaded = incident.load(path or self.incident())
        return repro.run(
            loaded,
            self.root / "left",
            Store(self.root / "results"),
            QuietWatcher(),
            repro.Wishes(**{"calls": 0, **wishes}),
        ).report


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    return Bench(tmp_path)


def is_certain(report: Repro, cause: str) -> None:
    """The cause is named with high confidence, shown by an experiment, and every other one is excluded by one."""
    states = {each.cause: each.state for each in report.attribution.suspicions}
    assert (report.attribution.cause, report.attribution.confidence) == (cause, "high"), report.attribution.summary
    assert {name for name, state in states.items() if state == "shown"} == {cause}
    assert set(states.values()) == {"shown", "excluded"}


def test_weights(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    report = bench.run()
    is_certain(report, "weights")
    assert report.find("reference_engine", "candidate").failures == 8  # type: ignore[union-attr]
    assert report.find("engine:linear_kernel", "candidate") is None


def test_a_kernel(bench: Bench) -> None:
    report = bench.run(bench.incident(candidate={"options": {"bad_kernel": 1.0}}))
    is_certain(report, "kernel_or_engine")
    assert report.find("engine:linear_kernel", "candidate").effect == "gone"  # type: ignore[union-attr]


def test_a_kernel_that_is_told_by_its_lever_alone(bench: Bench) -> None:
    report = bench.run(bench.incident(candidate={"options": {"bad_kernel": 1.0}}, reference=None))
    is_certain(report, "kernel_or_engine")
    assert report.find("reference_engine", "candidate") is None


def test_another_engine_that_spoils_sound_weights_too_clears_no_kernel(bench: Bench) -> None:
    report = bench.run(
        bench.incident(candidate={"options": {"bad_kernel": 1.0}}, reference={"options": {"garble": 1.0}})
    )
    is_certain(report, "kernel_or_engine")
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    report = bench.run(bench.incident(reference={"options": {"garble": 1.0}}))
    assert report.attribution.cause == "undetermined"
    assert any("fails with sound weights too" in each.because for each in report.attribution.suspicions)


@pytest.mark.parametrize(("own", "cause"), [("bfloat16", "kernel_or_engine"), ("float16", "baseline_too")])
def test_an_unquantized_model_that_overflows_in_the_candidates_float16_is_not_to_blame(
    own: str, cause: str, bench: Bench
) -> None:
    write_checkpoint(bench.root / "baseline", dtype=own)
    write_checkpoint(bench.root / "candidate", dtype="float16")
    faulty = {"options": {"overflow": 1.0}}
    report = bench.run(bench.incident(candidate=faulty, baseline=faulty, reference=faulty))
    is_certain(report, cause)
    found = report.find("own_dtype", "baseline")
    assert (found is not None and found.effect == "gone") == (own == "bfloat16")


@pytest.mark.parametrize(("dtype", "temperature"), [("float16", 0.7), ("float16", 0.0), ("bfloat16", 0.7)])
def test_weights_that_overflow_in_float16_alone_are_not_to_blame(dtype: str, temperature: float, bench: Bench) -> None:
    for side in ("candidate", "baseline"):
        write_checkpoint(bench.root / side, dtype=dtype)
    bench.plant("candidate", "fake.json", {"overflow": 1.0})
    body = {"messages": [{"role": "user", "content": STORY}], "temperature": temperature, "max_tokens": 64}
    report = bench.run(bench.incident(request={"body": body}))
    said = report.attribution
    if dtype == "bfloat16":
        assert said.cause == "not_reproduced"
    else:
        assert (said.cause, said.confidence) == ("kernel_or_engine", "high" if temperature else "medium"), said.summary
        assert "too narrow" in said.summary
        assert said.would_raise == (() if temperature else (suspects.WANT_SEEDS,))
        assert any("are one greedy answer" in note for note in report.notes) == (temperature == 0)


def test_weights_that_fail_in_float16_are_sure_only_where_a_wider_range_leaves_the_failure(bench: Bench) -> None:
    for side in ("candidate", "baseline"):
        write_checkpoint(bench.root / side, dtype="float16")
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    report = bench.run()
    is_certain(report, "weights")
    wider = report.find("engine:bfloat16", "candidate")
    assert wider is not None
    assert wider.effect == "kept"


def test_weights_without_another_engine_are_not_told_from_a_kernel(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    report = bench.run(bench.incident(reference=None))
    assert report.attribution.cause == "undetermined"
    assert "another engine" in report.attribution.summary


def test_a_template(bench: Bench) -> None:
    bench.plant("candidate", "chat_template.jinja", "wrong")
    bench.plant("baseline", "chat_template.jinja", "right")
    known = {"trained_template": hashlib.sha256(b"right").hexdigest()}
    for side in ("candidate", "baseline"):
        bench.plant(side, "fake.json", known)
    report = bench.run()
    is_certain(report, "template_or_tokenizer")
    assert [each.where for each in report.differences] == ["chat template"]
    assert (bench.root / "candidate" / "chat_template.jinja").read_text() == "wrong"


def test_a_lost_eos(bench: Bench) -> None:
    bench.plant("candidate", "generation_config.json", {"eos_token_id": 7})
    bench.plant("baseline", "generation_config.json", {"eos_token_id": 2})
    is_certain(bench.run(), "eos_or_configuration")


def test_the_checkpoints_own_sampling_defaults(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0, "above_temperature": 1.2})
    bench.plant("candidate", "generation_config.json", {"temperature": 1.5, "eos_token_id": 2})
    bench.plant("baseline", "generation_config.json", {"eos_token_id": 2})
    path = bench.incident(request={"body": {"messages": [{"role": "user", "content": STORY}], "max_tokens": 64}})
    report = bench.run(path)
    assert report.request["temperature"] == 1.5
    assert report.find("neutral_defaults", "candidate").effect == "gone"  # type: ignore[union-attr]
    assert report.attribution.cause == "eos_or_configuration"


def test_sampling(bench: Bench) -> None:
    for side in ("candidate", "baseline"):
        bench.plant(side, "fake.json", {"loop": 1.0, "above_temperature": 0.5})
    report = bench.run()
    is_certain(report, "sampling")
    assert report.find("temperature_0.3", "candidate").failures == 0  # type: ignore[union-attr]


def test_the_model_itself(bench: Bench) -> None:
    for side in ("candidate", "baseline"):
        bench.plant(side, "fake.json", {"garble": 1.0})
    is_certain(bench.run(), "baseline_too")


def test_load(bench: Bench) -> None:
    path = bench.incident(candidate={"options": {"race": 1.0}}, concurrency=8)
    report = bench.run(path)
    is_certain(report, "nondeterminism_under_load")
    assert report.find("as_filed", "candidate").concurrency == 8  # type: ignore[union-attr]


def test_a_failure_of_three_in_ten(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 0.3})
    report = bench.run(bench.incident(frequency={"failures": 3, "tries": 10}))
    is_certain(report, "weights")
    assert 8 <= report.find("as_filed", "candidate").failures < 32  # type: ignore[union-attr]


def test_what_is_too_rare_to_compare_is_said_and_not_isolated(bench: Bench) -> None:
    report = bench.run(bench.incident(candidate={"options": {"bad_kernel": 0.0089}}))
    assert (report.experiments[0].failures, report.experiments[0].tries) == (1, 232)
    assert "seen 1 of 232 times: too seldom" in report.notes[0]
    assert report.attribution.cause == "undetermined"
    assert len(report.experiments) == 1


def test_what_keeps_a_rare_failure_is_seen_by_the_seeds_that_failed(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 0.03})
    report = bench.run(rate=0.03)
    is_certain(report, "weights")
    by_seeds = {(each.factor, each.arm): each for each in report.experiments if each.of_failed}
    assert {("failed_again", "candidate"), ("reference_engine", "candidate")} < by_seeds.keys()
    assert all(each.failures == each.tries <= 8 and each.effect == "kept" for each in by_seeds.values())
    assert report.find("as_filed", "baseline").tries > 64  # type: ignore[union-attr]
    assert report.notes[0].startswith("a seed that failed fails again: ask with one of ")
    told = {each.cause: each.because for each in report.attribution.suspicions}
    assert "fake: 8 of the 8 seeds that failed as filed fail" in told["kernel_or_engine"]


def test_seeds_of_a_rare_failure_that_comes_and_goes_tell_nothing(bench: Bench) -> None:
    report = bench.run(bench.incident(candidate={"options": {"race": 0.06}}, concurrency=8), rate=0.06)
    is_certain(report, "nondeterminism_under_load")
    (again,) = [each for each in report.experiments if each.of_failed]
    assert (again.factor, again.effect) == ("failed_again", "unclear")
    assert report.notes[0].startswith("it comes and goes: ")


@pytest.mark.parametrize(("rate", "tries", "excluded"), [(None, 29, 0.0981), (0.01, 299, 0.00997)])
def test_not_reproduced_states_the_rate_that_is_excluded(
    bench: Bench, rate: float | None, tries: int, excluded: float
) -> None:
    report = bench.run(rate=rate)
    assert report.attribution.cause == "not_reproduced"
    assert report.experiments[0].tries == tries
    assert report.excluded_rate == pytest.approx(excluded, abs=1e-4)
    assert len(report.experiments) == 1


def test_without_a_baseline_it_is_said_what_is_missing(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    report = bench.run(bench.incident(baseline=None))
    assert report.attribution.cause == "undetermined"
    assert any("no baseline" in line for line in report.not_isolated)
    assert "the unquantized model, asked the same" in report.attribution.would_raise


def test_an_engine_that_fails_in_one_experiment_spoils_only_that(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    report = bench.run(bench.incident(reference={"options": {"refuse_start": True}}))
    refused = report.find("reference_engine", "candidate")
    assert refused is not None
    assert "did not start" in str(refused.refused)
    assert report.attribution.cause == "undetermined"


def test_a_candidate_that_cannot_be_asked_is_an_error(bench: Bench) -> None:
    with pytest.raises(DiedError, match="SIGKILL"):
        bench.run(bench.incident(candidate={"options": {"die_after": 2}}))


def test_a_server_that_dies_once_is_started_again(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    path = bench.incident(candidate={"options": {"die_after": 5, "die_times": 1}})
    assert bench.run(path).find("as_filed", "candidate").failures == 8  # type: ignore[union-attr]


@pytest.mark.parametrize("as_failure", [False, True])
def test_a_server_that_refuses_every_request(bench: Bench, as_failure: bool) -> None:
    bench.incident(candidate={"options": {"error": 1.0}}, recognise={"error": as_failure} if as_failure else {})
    if as_failure:
        assert bench.run(bench.root / "incident.json").find("as_filed", "candidate").failures == 8  # type: ignore[union-attr]
    else:
        with pytest.raises(EngineError, match="answered none of 8 tries: HTTP 500: planted") as caught:
            bench.run(bench.root / "incident.json")
        assert "recognise: {error: true}" in str(caught.value.advice)


class Interrupting(QuietWatcher):
    """Ctrl-C after so many tries."""

    def __init__(self, after: int) -> None:
        self.left = after

    @contextmanager
    def task(self, label: str, total: int | None, done: int = 0) -> Iterator[Task]:
        watcher = self

        class Counting:
            def advance(self, num: int = 1) -> None:
                watcher.left -= num
                if watcher.left < 0:
                    raise KeyboardInterrupt

            def detail(self, text: str) -> None:
                return None

        yield Counting()


@pytest.mark.parametrize("after", [3, 20, 60])
def test_an_interrupted_run_goes_on_and_asks_nothing_twice(
    bench: Bench, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    asked: list[tuple[str, int]] = []
    generate = FakeSession.generate

    def noted(self: FakeSession, requests: Any) -> Iterator[Answer]:
        for request in (wanted := list(requests)):
            served = (self._job.name, self._job.dtype, json.dumps(self._job.options.model_dump()))
            asked.append(("".join(served) + request.id, request.sampling.seed))
        return generate(self, wanted)

    monkeypatch.setattr(FakeSession, "generate", noted)
    loaded = incident.load(bench.incident())
    store, wishes = Store(bench.root / "results"), repro.Wishes(calls=40)
    with pytest.raises(KeyboardInterrupt):
        repro.run(loaded, bench.root / "left", store, Interrupting(after), wishes)
    report = repro.run(loaded, bench.root / "left", store, QuietWatcher(), wishes).report
    is_certain(report, "weights")
    assert len(asked) == len(set(asked))
    num_asked = len(asked)
    again = repro.run(loaded, bench.root / "left", store, QuietWatcher(), wishes).report
    assert len(asked) == num_asked
    assert again.experiments == report.experiments


def test_what_must_be_in_flight_together_is_asked_together_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    generate = FakeSession.generate

    def cut_short(self: FakeSession, requests: Any) -> Iterator[Answer]:
        wanted = list(requests)
        loads.append(len(wanted))
        for number, answer in enumerate(generate(self, wanted)):
            if len(loads) == 1 and number == 5:
                raise KeyboardInterrupt
            yield answer

    monkeypatch.setattr(FakeSession, "generate", cut_short)
    path = bench.incident(candidate={"options": {"race": 1.0}}, concurrency=8)
    with pytest.raises(KeyboardInterrupt):
        bench.run(path)
    is_certain(bench.run(path), "nondeterminism_under_load")
    assert loads[:2] == [8, 8]


def server(text: Callable[[dict[str, Any]], str], *, vllm: bool = True) -> HttpStub:
    """A server that answers every chat by `text`."""

    async def answer(request: Request) -> tuple[int, Any]:
        if request.path == "/v1/models":
            return 200, {"data": [{"id": "m"}]}
        if request.path in {"/version", "/health"}:
            return (200, {"version": "0.32.0"}) if vllm else (404, "")
        choice = {"message": {"content": text(request.body)}, "finish_reason": "stop"}
        return 200, {"choices": [choice], "prompt_token_ids": [1, 2] if vllm else None}

    return HttpStub(answer)


def test_a_url_alone_says_what_cannot_be_isolated(bench: Bench) -> None:
    with server(lambda body: garble(GOOD_ANSWER)) as bad:
        value = {"kind": "incident", "version": 1, "candidate": {"url": f"{bad.url}/v1"},
                 "request": {"body": {"messages": [{"role": "user", "content": STORY}]}}}  # fmt: skip
        path = bench.root / "url.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        report = bench.run(path)
    assert report.attribution.cause == "undetermined"
    assert any("running server: its kernels" in line for line in report.not_isolated)
    assert report.find("engine:cold_prefix_cache", "candidate").effect == "kept"  # type: ignore[union-attr]
    chats = [request.body for request in bad.seen if request.body]
    assert "temperature" not in chats[0]
    assert "the request leaves out temperature" in " ".join(report.notes)
    salts = [body.get("cache_salt") for body in chats]
    assert set(salts[:-8]) == {None}
    assert len(set(salts[-8:]) - {None}) == 8


def test_two_urls_tell_sampling_and_never_weights(bench: Bench) -> None:
    def hot(body: dict[str, Any]) -> str:
        return garble(GOOD_ANSWER) if body["temperature"] > 0.5 else GOOD_ANSWER

    with server(hot) as bad, server(hot) as other:
        path = bench.incident(candidate={"checkpoint": None, "engine": None, "url": bad.url},
                              baseline={"checkpoint": None, "engine": None, "url": other.url}, reference=None)  # fmt: skip
        report = bench.run(path)
    assert (report.attribution.cause, report.attribution.confidence) == ("sampling", "medium")
    assert report.attribution.would_raise

    with server(lambda body: garble(GOOD_ANSWER)) as bad, server(lambda body: GOOD_ANSWER) as other:
        path = bench.incident(candidate={"checkpoint": None, "engine": None, "url": bad.url},
                              baseline={"checkpoint": None, "engine": None, "url": other.url}, reference=None)  # fmt: skip
        report = bench.run(path)
    assert report.attribution.cause == "undetermined"
    assert {each.cause: each.state for each in report.attribution.suspicions}["template_or_tokenizer"] == "excluded"


def test_a_server_that_is_not_vllm_is_asked_without_vllms_fields(bench: Bench) -> None:
    with server(lambda body: garble(GOOD_ANSWER), vllm=False) as bad:
        path = bench.incident(
            candidate={"checkpoint": None, "engine": None, "url": bad.url}, baseline=None, reference=None
        )
        report = bench.run(path)
        bodies = [request.body for request in bad.seen if request.body]
    assert report.find("engine:cold_prefix_cache", "candidate") is None
    assert not any("cache_salt" in body or "return_token_ids" in body for body in bodies)
    assert report.find("as_filed", "candidate").prompt_sha256 == ()  # type: ignore[union-attr]


def test_a_raw_prompt_is_replayed_as_one(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    body = {"prompt": STORY, "temperature": 0.0, "max_tokens": 32}
    path = bench.incident(request={"endpoint": "/v1/completions", "body": body})
    is_certain(bench.run(path), "weights")


def test_what_is_left_behind(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0, "trigger": "harbour 4711"})
    report = bench.run(calls=None)
    left = bench.root / "left"
    files = {"repro.json", "repro.md", "repro.sh", "repro.py", "incident.yaml", "rate.svg", "logs"}
    assert {path.name for path in left.iterdir()} == files
    assert artefact.dumps(artefact.load(left / "repro.json", Repro)) == artefact.dumps(report)
    assert incident.load(left / "incident.yaml").written == report.incident
    page = (left / "repro.md").read_text(encoding="utf-8")
    assert "**Cause: the quantized weights (confidence: high).**" in page
    assert "characters" in page
    assert report.minimised is not None
    assert report.minimised.after.num_words == 2
    assert [(each.arm, each.failures) for each in report.minimal] == [("candidate", 8), ("baseline", 0)]
    assert not any(
        str(bench.root) in text for text in (page, (left / "repro.sh").read_text(), (left / "repro.py").read_text())
    )


@pytest.mark.parametrize("script", [["sh", "repro.sh"], [sys.executable, "repro.py"]], ids=["sh", "python"])
def test_the_scripts_fail_when_the_failure_shows_and_only_then(bench: Bench, script: list[str]) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    bench.run(bench.incident(concurrency=2, title='Bad """ $(touch owned) \\ "quotes"'))

    def ran(url: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "QGATE_URL": url, "QGATE_API_KEY": "sk-secret"}
        return subprocess.run(
            script, cwd=bench.root / "left", env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    with server(lambda body: garble(GOOD_ANSWER), vllm=False) as bad:
        found = ran(bad.url + "/v1")
        assert (found.returncode, found.stderr) == (1, "")
        assert "answers fail" in found.stdout
        assert all(request.headers["authorization"] == "Bearer sk-secret" for request in bad.seen)
        chats = [request.body for request in bad.seen if request.body]
        assert len({body["seed"] for body in chats}) == len(chats)
        assert {body["model"] for body in chats} == {"m"}
    with server(lambda body: GOOD_ANSWER, vllm=False) as good:
        assert ran(good.url).returncode == 0
    assert ran("http://127.0.0.1:9").returncode == 2
    assert not (bench.root / "left" / "owned").exists()


def test_every_factor_is_run_where_it_is_wished(bench: Bench) -> None:
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    report = bench.run(every=True)
    tried = {(each.factor, each.arm) for each in report.experiments}
    assert {("template", "candidate"), ("configuration", "candidate"), ("engine:linear_kernel", "baseline")} <= tried
    is_certain(report, "weights")


def test_requests_hold_the_filed_seed_first(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[GenerateRequest] = []
    generate = FakeSession.generate

    def noted(self: FakeSession, requests: Any) -> Iterator[Answer]:
        seen.extend(wanted := list(requests))
        return generate(self, wanted)

    monkeypatch.setattr(FakeSession, "generate", noted)
    body = {"messages": [{"role": "user", "content": STORY}], "seed": 77, "temperature": 1}
    bench.run(bench.incident(request={"body": body}))
    assert [request.sampling.seed for request in seen[:3]] == [77, 1, 2]


def running(bench: Bench, url: str) -> Path:
    """An incident of a server that runs, seen under load."""
    body = {"messages": [{"role": "user", "content": STORY}], "temperature": 0.0, "max_tokens": 64}
    value = {"kind": "incident", "version": 1, "candidate": {"url": f"{url}/v1"}, "concurrency": 4,
             "baseline": {"checkpoint": {"path": "baseline"}, "engine": "fake"}, "request": {"body": body}}  # fmt: skip
    path = bench.root / "running.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_server_that_was_mended_meanwhile_is_no_load(bench: Bench) -> None:
    asked = iter(range(10**6))
    with server(lambda body: garble(GOOD_ANSWER) if next(asked) < 8 else GOOD_ANSWER) as mended:
        report = bench.run(running(bench, mended.url))
    assert report.find("one_at_a_time", "candidate").effect == "gone"  # type: ignore[union-attr]
    assert report.attribution.cause == "undetermined"
    assert "did not stay as it was" in report.attribution.summary


def test_a_finished_run_is_not_taken_for_what_a_server_answers_now(bench: Bench) -> None:
    answers = [garble(GOOD_ANSWER)]
    with server(lambda body: answers[0]) as bad:
        path = running(bench, bad.url)
        assert bench.run(path).find("as_filed", "candidate").failures == 8  # type: ignore[union-attr]
        answers[0] = GOOD_ANSWER
        assert bench.run(path).attribution.cause == "not_reproduced"


def test_a_server_that_wants_a_key_says_where_to_name_it(bench: Bench) -> None:
    async def closed(request: Request) -> tuple[int, Any]:
        return (200, {"data": [{"id": "m"}]}) if request.path == "/v1/models" else (401, {"error": "no key"})

    with HttpStub(closed) as locked, pytest.raises(EngineError, match="HTTP 401") as caught:
        bench.run(running(bench, locked.url))
    assert "api_key_env" in str(caught.value.advice)
