"""`qgate repro` and `qgate repro new` on the command line: files in and out, exit codes, and no secret anywhere."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from qgate import pipeline
from qgate.cli import main
from qgate.io import evalsets, incident, recipe
from qgate.schemas.recipe import EvalsetUse
from tests.unit.test_pipeline import Watcher, made
from tests.unit.test_repro import GOOD_ANSWER, STORY, Bench, server
from tests.unit.tiny_checkpoint import write_checkpoint

SECRET = "sk-abcdefghijklmnopqrstuv"
CURL = f"""\
curl https://api.example/v1/chat/completions -H 'Authorization: Bearer {SECRET}' \\
  -d '{{"model": "big", "messages": [{{"role": "user", "content": "{STORY}"}}], "temperature": 0.7, "max_tokens": 64}}'
"""


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def call(*words: str | Path) -> int:
    return main(["repro", *map(str, words)])


def planted(root: Path, **fault: float) -> Path:
    bench = Bench(root)
    bench.plant("candidate", "fake.json", fault)
    return bench.incident()


@pytest.mark.parametrize(("fault", "code"), [({"garble": 1.0}, 0), ({}, 3)])
def test_exit_codes(fault: dict[str, float], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(planted(tmp_path, **fault), "--calls", "0", "--quiet") == code
    out = capsys.readouterr().out
    assert ("Cause: the quantized weights (confidence: high)" if code == 0 else "Cause: not reproduced") in out
    (page,) = (tmp_path / "results" / "repro").glob("incident-*/repro.md")
    assert str(page.relative_to(tmp_path)) in out.replace("\n", "")


@pytest.mark.parametrize(
    "words", [["missing.yaml"], ["incident.json", "--rate", "2"], ["incident.json", "--calls", "-5"]]
)
def test_what_the_user_gets_wrong_is_2(words: list[str], tmp_path: Path) -> None:
    planted(tmp_path)
    assert call(*words) == 2


@pytest.mark.parametrize("out", ["incident.json", "/proc/none"])
def test_a_place_that_cannot_be_written_to_is_no_bug(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(planted(tmp_path), "--quiet", "--out", out) == 3
    assert f"cannot write {out}" in capsys.readouterr().err


def test_a_scorer_whose_arguments_are_wrong_is_told_before_a_server_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(tmp_path)
    path = bench.incident(recognise={"scorer": {"name": "exact", "args": {"answer": "y"}}})
    assert call(path, "--quiet") == 2
    assert "recognise.scorer.args: exact: " in capsys.readouterr().err
    assert not list((tmp_path / "results").rglob("*.log"))


@pytest.mark.parametrize("there", ["notes/items.jsonl", "notes"])
def test_what_is_no_set_is_left_alone(there: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / there
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine", encoding="utf-8")
    assert call(planted(tmp_path, garble=1.0), "--quiet", "--calls", "0", "--add-to", "notes") == 2
    assert "is no evaluation set" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--launch", "vllm 'x"], "cannot be read as a shell does"),
        (["--launch", "vllm serve --api-key abc"], "--launch holds a secret"),
        (["--launch", "VLLM_API_KEY=abc vllm serve"], "--launch holds a secret"),
        (["--concurrency", "0"], "from 1 to 1024"),
        (["--engine", "fake", "--launch", "vllm serve x"], "--launch: the engine fake takes no launch arguments"),
        (["--engine", "openai", "--launch", "vllm serve x"], "the engine openai takes no launch arguments"),
        (["--engine", "fke"], "did you mean 'fake'"),
        (["--candidate", "http://h/v1", "--launch", "x"], "--launch belongs to a checkpoint"),
        (["--candidate", "ftp://h/v1"], "no http(s) address"),
        (["--baseline", "http://u:SECRET@h/v1"], "has a user"),
        (["--request", "empty.txt"], "the request is empty"),
    ],
)
def test_new_writes_nothing_that_repro_would_refuse(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "request.txt").write_text("Hi", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    assert call("new", "i.yaml", "--request", "request.txt", "--candidate", "cand", *words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "SECRET" not in error
    assert not (tmp_path / "i.yaml").exists()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "no answer is filed: any defect counts"),
        ("Lodz is a village.", "no defect that is known: the failure is at least 80% like the filed answer; where it"),
        ("no more " * 200, "the failure is one of the defects repetition_loop, token_flood, or at least 80% like"),
    ],
)
def test_new_says_what_counts_as_the_failure(
    answer: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "curl.txt").write_text(CURL, encoding="utf-8")
    if answer is not None:
        (tmp_path / "answer.txt").write_text(answer, encoding="utf-8")
    assert call("new", "i.yaml", "--curl", "curl.txt", *([] if answer is None else ["--answer", "answer.txt"])) == 0
    out = capsys.readouterr().out
    assert said in out
    assert "where that server wants a key, name the variable" in out
    assert "tried" not in yaml.safe_load((tmp_path / "i.yaml").read_text(encoding="utf-8"))


def test_the_request_goes_into_a_set_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = planted(tmp_path, garble=1.0)
    for said in ("regressions@1: 1 item, with incident-", "regressions@1: 1 item, which had incident-"):
        assert call(path, "--quiet", "--calls", "0", "--add-to", "sets/regressions") == 0
        assert said in capsys.readouterr().out
    text = path.read_text().replace("harbour is 4711", "harbour is 4712")
    path.write_text(text, encoding="utf-8")
    assert call(path, "--quiet", "--calls", "0", "--add-to", "sets/regressions") == 0
    loaded = evalsets.load(EvalsetUse(name="sets/regressions"), tmp_path)
    assert (loaded.version, len(loaded.items)) == (2, 2)
    first = loaded.items[0]
    assert first.messages[0].content == STORY
    assert first.slices == {"cause": "weights", "temperature": "0.7"}
    assert first.max_tokens == 64


def test_a_set_that_was_changed_is_not_added_to(tmp_path: Path) -> None:
    path = planted(tmp_path, garble=1.0)
    assert call(path, "--quiet", "--calls", "0", "--add-to", "regressions") == 0
    with (tmp_path / "regressions" / "items.jsonl").open("a") as stream:
        stream.write("\n")
    assert call(path, "--quiet", "--calls", "0", "--add-to", "regressions") == 2


def test_a_raw_prompt_is_no_item(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(tmp_path)
    bench.plant("candidate", "fake.json", {"garble": 1.0})
    path = bench.incident(request={"endpoint": "/v1/completions", "body": {"prompt": STORY, "temperature": 0.5}})
    assert call(path, "--quiet", "--calls", "0", "--add-to", "regressions") == 2
    assert "repro.sh" in capsys.readouterr().err


def test_new_from_a_curl_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "curl.txt").write_text(CURL, encoding="utf-8")
    (tmp_path / "answer.txt").write_text("!!!! Bearer abcdefghijkl", encoding="utf-8")
    words = ["--curl", "curl.txt", "--answer", "answer.txt", "--seen", "3/10", "--concurrency", "8"]
    assert call("new", "i.yaml", *words, "--tried", f"key {SECRET}", "--title", "A title") == 0
    out, written = capsys.readouterr().out, (tmp_path / "i.yaml").read_text(encoding="utf-8")
    assert "taken out: 3 secrets (keys, tokens, cookies, passwords)" in out
    assert SECRET not in written + out
    assert "abcdefghijkl" not in written
    made_of = incident.load(tmp_path / "i.yaml").incident
    assert made_of.candidate.url == "https://api.example"
    assert made_of.candidate.model == "big"
    assert made_of.frequency is not None
    assert (made_of.frequency.rate, made_of.concurrency, made_of.secrets_removed) == (0.3, 8, 3)
    assert call("new", "i.yaml", *words) == 2
    assert call("new", "i.yaml", *words, "--force") == 0


def test_new_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(CURL))
    assert call("new", "i.yaml", "--curl", "-", "--candidate", "m", "--engine", "fake", "--baseline", "b") == 0
    value = yaml.safe_load((tmp_path / "i.yaml").read_text())
    assert value["candidate"] == {"checkpoint": {"path": "m"}, "engine": "fake"}
    assert value["baseline"] == {"checkpoint": {"path": "b"}, "engine": "fake"}
    assert value["title"] == f"big: {STORY}"[:64].rstrip() + "…"


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        ("http://h:8000/v1", {"url": "http://h:8000/v1"}),
        ("Org/Model-w8a8@main", {"checkpoint": {"hub": "Org/Model-w8a8", "revision": "main"}}),
        ("/models/m", {"checkpoint": {"path": "/models/m"}}),
    ],
)
def test_new_from_a_pasted_request(candidate: str, expected: object, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("What is it?\n", encoding="utf-8")
    assert call("new", "sub/i.yaml", "--request", "prompt.txt", "--candidate", candidate) == 0
    value = yaml.safe_load((tmp_path / "sub" / "i.yaml").read_text())
    assert (value["candidate"], value["title"]) == (expected, "What is it?")


def test_new_takes_the_request_of_a_log_that_is_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f'Request r{n} JSON body: {{"model": "m", "prompt": "no. {n}"}}' for n in (7, 8)]
    (tmp_path / "vllm.log").write_text("\n".join(lines), encoding="utf-8")
    words = ["new", "i.yaml", "--log", "vllm.log", "--candidate", "m"]
    assert call(*words) == 2
    assert "  2  r8  no. 8" in capsys.readouterr().err
    assert call(*words, "--item", "2") == 0
    assert yaml.safe_load((tmp_path / "i.yaml").read_text())["title"] == "m: no. 8"


def test_new_from_a_log_needs_to_know_what_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}]})
    (tmp_path / "vllm.log").write_text(f"DEBUG Request chatcmpl-1 JSON body: {body}\n", encoding="utf-8")
    assert call("new", "i.yaml", "--log", "vllm.log") == 2
    assert "--candidate" in capsys.readouterr().err
    launch = "vllm serve x --enforce-eager"
    assert call("new", "i.yaml", "--log", "vllm.log", "--candidate", "m", "--launch", launch) == 0
    assert incident.load(tmp_path / "i.yaml").sides["candidate"].options.model_dump()["enforce_eager"]


@pytest.mark.parametrize(
    "words",
    [
        ["--request", "none.txt", "--candidate", "m"],
        ["--request", "r.txt", "--candidate", "m", "--seen", "11/10"],
        ["--request", "r.txt", "--candidate", "m", "--seen", "often"],
        ["--request", "r.txt", "--candidate", "m", "--launch", f"vllm serve m --api-key {SECRET}"],
        ["--run", "none", "--variant", "v", "--item", "i"],
        ["--run", "none"],
    ],
)
def test_what_new_refuses(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.txt").write_text("Hi", encoding="utf-8")
    assert call("new", "i.yaml", *words) == 2
    assert SECRET not in capsys.readouterr().err
    assert not (tmp_path / "i.yaml").exists()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A recipe and its run."""
    folder = tmp_path_factory.mktemp("finished")
    path = made(folder)
    return path, pipeline.run(recipe.load(path), folder / "results", Watcher()).folder


def test_new_from_a_runs_item_and_on_to_its_cause(
    finished: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, run = finished
    sheet = json.loads((run / "verdict.json").read_text())
    worst = next(each["id"] for each in sheet["examples"] if each["variant"] == "bad" and each["defects"])
    words = ["--run", run, "--variant", "bad", "--recipe", path, "--results", run.parent.parent]
    assert call("new", "i.yaml", *words, "--item", worst) == 0
    found = incident.load(tmp_path / "i.yaml").incident
    assert found.request.body["max_tokens"] == 160
    assert found.candidate.options["loop"] == 0.6
    assert "loop" not in (found.baseline.options if found.baseline else {"loop": 1})
    assert isinstance(found.answer, dict)
    assert found.source.endswith(f"bad, {worst}")
    assert call("i.yaml", "--quiet", "--calls", "0") == 3
    out = capsys.readouterr().out
    assert "missing: the same checkpoint in another engine" in out
    assert "like the filed answer" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--variant", "none", "--item", "tiny/crate-001"], "known: good, bad"),
        (["--variant", "bad", "--item", "tiny/none"], "its worst answers: "),
    ],
)
def test_a_run_says_what_it_has(
    finished: tuple[Path, Path], words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, run = finished
    assert call("new", "i.yaml", "--run", run, "--recipe", path, *words) == 2
    assert said in capsys.readouterr().err


def test_a_run_whose_sets_are_elsewhere_says_how_to_find_them(
    finished: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("new", "i.yaml", "--run", finished[1], "--variant", "bad", "--item", "tiny/crate-001") == 2
    assert "--recipe" in capsys.readouterr().err


def test_the_schema_of_incidents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--incident"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Incident"


def test_a_running_server_from_curl_to_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_checkpoint(tmp_path / "plain")
    with server(lambda body: "\ufffd" * 9 + GOOD_ANSWER) as bad:
        text = CURL.replace("https://api.example", bad.url).replace('"big"', '"m"')
        (tmp_path / "curl.txt").write_text(text, encoding="utf-8")
        assert call("new", "i.yaml", "--curl", "curl.txt", "--baseline", "plain", "--engine", "fake") == 0
        assert call("i.yaml", "--quiet", "--calls", "0") == 3
    assert "undetermined" in capsys.readouterr().out
