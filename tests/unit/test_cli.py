"""The command line: its options are pinned, it is quick, and every error is one message with the documented exit code."""

import argparse
import errno
import io
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qgate import cli
from qgate.arguments import parse, parser
from qgate.errors import ExitCode
from qgate.parser import EXAMPLES
from tests.processes import PATIENCE_S, wait_for
from tests.unit.recipes import small, write
from tests.unit.test_pipeline import made

PINNED = {
    "run": "recipe --results --quiet --fail-on",
    "plan": "recipe --results --gpu-memory --gpus",
    "show": "run --results",
    "compare": "earlier later --results",
    "init": "file",
    "schema": "--engine --quantizer --incident",
    "verify": "checkpoint --evidence --tier --max-age --evalset --key --identity --issuer --trusted-root",
    "promote": "checkpoint --evidence --tier --max-age --evalset --key --identity --issuer --trusted-root --out",
    "sign": "evidence --key --keyless --trust-config --out",
    "env build": "names --again --quiet",
    "env list": "",
    "env remove": "names",
    "evalset list": "",
    "evalset verify": "sets",
    "evalset show": "set item",
    "evalset stats": "set",
    "evalset lock": "folder --keep-version",
    "evalset new": "folder --from --dataset --revision --split --config --map --scorer --limit --env --description "
    "--license --skip-bad",
    "repro": "incident --results --out --rate --calls --every --add-to --quiet",
    "repro new": "file --curl --log --request --run --answer --variant --item --profile --seed --recipe --candidate --baseline "
    "--engine --launch --concurrency --seen --tried --title --force --results",
    "inspect": "checkpoint --baseline --json --tensor-parallel-size --no-weights",
    "scan": "file",
    "doctor": "--results",
    "selftest": "--out --runs --damaged",
}


def verbs(parser: argparse.ArgumentParser, prefix: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every leaf verb and its parser."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield prefix.strip(), parser
    for action in below:
        for name, child in action.choices.items():
            yield from verbs(child, f"{prefix} {name}")


def test_options_are_pinned() -> None:
    found = {
        name: " ".join(
            action.option_strings[0] if action.option_strings else action.dest
            for action in parser._actions
            if not isinstance(action, argparse._HelpAction)
        )
        for name, parser in verbs(parser())
    }
    assert found == PINNED


@pytest.mark.parametrize("name", sorted({parser.get_default("target") for _, parser in verbs(parser())}))
def test_every_verb_has_its_function(name: str) -> None:
    module, function = name.split(":")
    assert callable(getattr(__import__(module, fromlist=[function]), function))


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from qgate import arguments, cli; arguments.parser().format_help(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pydantic", "rich", "scipy", "yaml", "aiohttp"}.intersection(loaded)


def test_a_user_error_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, small(temprature=1))
    assert cli.main(["run", str(path)]) == ExitCode.USER_ERROR
    said = capsys.readouterr().err
    assert said.startswith("qgate: recipe.yaml, line ")
    assert "Traceback" not in said


def test_advice_is_shown_as_the_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", str(tmp_path / "none.yaml")]) == ExitCode.USER_ERROR
    assert "\n  fix: `qgate init`" in capsys.readouterr().err


def test_two_words_are_one_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(["repro", "new", "a.yaml", "--log", "b"]).target == "qgate.commands.repro_new:new"
    assert parse(["repro", "newer.yaml"]).target == "qgate.commands.repro:repro"
    with pytest.raises(SystemExit):
        parse(["repro", "new", "--help"])
    assert capsys.readouterr().out.startswith("usage: qgate repro new ")
    assert "repro-new" not in parser().format_help()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "start here: qgate init recipe.yaml"),
        (["env"], "every lock and whether"),
        (["evalset"], "pin a set's files"),
    ],
)
def test_without_a_verb_there_is_help_and_no_success(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == ExitCode.USER_ERROR
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "usage", "near"),
    [
        (["plam", "x.yaml"], "qgate", "; did you mean 'plan'?"),
        (["evalset", "stat", "x"], "qgate evalset", "; did you mean 'stats'?"),
        (["run", "x.yaml", "--fail-on", "failed"], "qgate run", "; did you mean 'fail'?"),
        (
            ["run", "x.yaml", "--resluts=y"],
            "qgate run",
            "unrecognized arguments: --resluts=y; did you mean '--results'?",
        ),
        (["scan", "x", "--frobnicate"], "qgate scan", "unrecognized arguments: --frobnicate"),
        (["repro", "x.yaml", "--bogus"], "qgate repro", "unrecognized arguments: --bogus"),
        (["xyzzy"], "qgate", ")"),
    ],
)
def test_a_mistyped_word_gets_the_near_one(
    capsys: pytest.CaptureFixture[str], words: list[str], usage: str, near: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == ExitCode.USER_ERROR
    said = capsys.readouterr().err
    assert said.startswith(f"usage: {usage} [-h]")
    assert said.endswith(f"{near}\n")


def test_every_verb_has_an_example_that_parses() -> None:
    assert sorted(EXAMPLES) == sorted(PINNED)
    for name, example in EXAMPLES.items():
        parsed = parse([*name.split(), *example.split()])
        assert parsed.parser.prog == f"qgate {name}"
        assert f"qgate {name} {example}" in parsed.parser.format_help() or not example


def test_every_argument_has_its_meaning() -> None:
    bare = [f"{name} {action.dest}" for name, verb in verbs(parser()) for action in verb._actions if not action.help]
    assert bare == []


def test_every_default_is_told() -> None:
    silent = [
        f"{name} {action.dest}"
        for name, verb in verbs(parser())
        for action in verb._actions
        if action.option_strings and action.default not in (None, False, [], "", argparse.SUPPRESS)
        if "default: " not in str(action.help)
    ]
    assert silent == []


def test_a_bug_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("qgate.commands.schema.schema", lambda arguments: 1 / 0)
    assert cli.main(["schema"]) == ExitCode.BUG
    assert "this is a bug in qgate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EIO, "Input/output error", "x.json"), "qgate: Input/output error: x.json\n  fix: "),
        (OSError(errno.ENOSPC, "No space left on device"), "qgate: No space left on device\n  fix: "),
        (MemoryError(), "qgate: out of memory\n  fix: "),
    ],
)
def test_what_the_machine_will_not_do_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, said: str
) -> None:
    def fail(arguments: argparse.Namespace) -> None:
        raise error

    monkeypatch.setattr("qgate.commands.schema.schema", fail)
    assert cli.main(["schema"]) == ExitCode.INCONCLUSIVE
    assert capsys.readouterr().err.startswith(said)


def test_a_terminal_that_lacks_a_character_shows_another(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setattr("qgate.commands.schema.schema", lambda arguments: print("a · b", flush=True) or ExitCode.PASS)
    assert cli.main(["schema"]) == ExitCode.PASS
    assert raw.getvalue() == b"a ? b\n"


def test_nohup_is_heeded() -> None:
    code = "import signal; from qgate.cli import main; main(['schema']); print(signal.getsignal(signal.SIGHUP).name)"
    argv = ["sh", "-c", f'trap "" HUP; exec {sys.executable} -c "$0"', code]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.endswith("SIG_IGN\n")


@pytest.mark.parametrize("verb", ["schema", "evalset list"])
def test_a_reader_that_went_away_got_no_verdict(verb: str) -> None:
    argv = [sys.executable, "-m", "qgate", *verb.split()]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.close()
    _, said = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, said) == (ExitCode.INCONCLUSIVE, b"")


def test_an_unknown_verb_is_a_user_error() -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["rnu"])
    assert caught.value.code == ExitCode.USER_ERROR


HEEDING = """\
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from qgate.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""What a shell starts in the background ignores SIGINT, what nohup starts SIGHUP, and so would all that these start."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_what_was_done(tmp_path: Path, number: signal.Signals) -> None:
    path = made(tmp_path, engine={"name": "fake", "concurrency": 1, "options": {"latency_s": 0.5}})
    argv = [sys.executable, "-c", HEEDING, "run", str(path), "--results", str(tmp_path / "results")]
    child = subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    parts: list[Path] = []

    def has_answers() -> bool:
        parts[:] = tmp_path.glob("results/objects/generations/*.part/answers.jsonl")
        return any(part.stat().st_size for part in parts)

    wait_for(has_answers)
    child.send_signal(number)
    _, said = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == ExitCode.INTERRUPTED
    assert "interrupted; what was finished is kept" in said
    assert parts[0].read_text(encoding="utf-8").endswith("\n")
