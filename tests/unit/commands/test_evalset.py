"""`qgate evalset`: what it prints and what it writes."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from qgate.arguments import parse
from qgate.commands import evalset
from qgate.errors import EvalsetError, ExitCode, UserError
from qgate.io import evalsets
from tests.unit.recipes import write_evalset


def test_the_shipped_sets_are_listed_and_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert evalset.list_sets(Namespace()) is ExitCode.PASS
    assert evalset.verify(Namespace(sets=[])) is ExitCode.PASS
    printed = capsys.readouterr().out
    for manifest in evalsets.available():
        name = f"{manifest.name}@{manifest.version}"
        assert f"{name}: {manifest.num_items} items, sha256 {evalsets.set_hash(manifest)}\n" in printed
        assert printed.count(name) == 2


def test_a_set_is_made_counted_shown_and_locked_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, folder = tmp_path / "in.jsonl", tmp_path / "mine"
    lines = ['{"id": "q1", "prompt": "Say \\u001b[31myes.", "answer": "yes", "scorer": "exact"}', "{"]
    source.write_text("\n".join(lines), encoding="utf-8")
    argv = ["evalset", "new", str(folder), "--from", str(source), "--license", "MIT", "--skip-bad"]
    assert evalset.new(parse(argv)) is ExitCode.PASS
    assert "in.jsonl:2: not JSON" in capsys.readouterr().out.replace("\n", " ")
    assert evalset.stats(Namespace(set=str(folder))) is ExitCode.PASS
    assert "mine@1: 1 item, 0 of them noised twins, 1 with a right answer in full" in capsys.readouterr().out
    assert evalset.show(Namespace(set=str(folder), item=None)) is ExitCode.PASS
    assert evalset.show(Namespace(set=str(folder), item="q1")) is ExitCode.PASS
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "Say \\x1b[31myes." in printed
    assert "right answer yes" in printed
    data = (folder / "items.jsonl").read_text("utf-8")
    (folder / "items.jsonl").write_text(data.replace("q1", "q2"), encoding="utf-8")
    with pytest.raises(EvalsetError):
        evalset.verify(Namespace(sets=[str(folder)]))
    assert evalset.lock(Namespace(folder=folder, keep_version=False)) is ExitCode.PASS
    assert "mine@2: 1 item," in capsys.readouterr().out


def test_an_item_that_is_not_there_is_an_error_with_the_command_that_lists_them() -> None:
    with pytest.raises(EvalsetError, match="has no item 'nope'") as caught:
        evalset.show(Namespace(set="noisy-text@1", item="nope"))
    assert caught.value.advice == "qgate evalset show noisy-text@1"


def test_a_set_without_a_name_and_a_set_that_no_run_could_score_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalsetError, match="name of a set is empty"):
        evalset.verify(Namespace(sets=[""]))
    item = {
        "id": "a",
        "messages": [{"role": "user", "content": "Why?"}],
        "kind": "k",
        "language": "en",
        "difficulty": 1,
    }
    for name, said in (("exakt", "no scorer named"), ("exact", "mine, item a: scorer exact: `values`")):
        (tmp_path / name).mkdir()
        folder = write_evalset(tmp_path / name, [json.dumps(item | {"scorer": {"name": name}})], "mine")
        with pytest.raises(UserError, match=said):
            evalset.verify(Namespace(sets=[str(folder)]))


MAPPED = "--map prompt=q --map answer=a"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--from in.jsonl --scorer exact", "--scorer would change nothing"),
        ("--from in.jsonl --limit 2", "--limit would change nothing"),
        (f"--from in.csv {MAPPED} --scorer exact --revision main", "--revision would change nothing"),
        (f"--from in.csv {MAPPED} --scorer exact --config en", "--config would change nothing"),
        (f"--from in.csv {MAPPED} --scorer exact --split test", "--split would change nothing"),
        (f"--from in.csv {MAPPED} --scorer exact --limit 0", "--limit 0 leaves no row"),
        (f"--from in.csv {MAPPED} --scorer exact --limit -3", "--limit -3 leaves no row"),
        (f"--from in.csv {MAPPED} --scorer exakt", "no scorer named 'exakt'"),
        ("--from in.csv --scorer exact", "is read as a table: which column is what"),
        ("--from .", "is read as a table: which column is what"),
        ("--from notes.md", "notes.md is by its name neither JSON lines nor a table"),
        ("--from none.csv", "no file or folder none.csv"),
        ("--dataset a/b --scorer exact --revision main", "no column is mapped to what is asked"),
        (f"--dataset a/b {MAPPED} --scorer exact", "has no --revision"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.md").write_text("# Why?")
    Path("in.csv").write_text("q,a\nWhy?,so\nWho?,me\n", encoding="utf-8")
    Path("in.jsonl").write_text('{"prompt": "Why?", "answer": "so", "scorer": "exact"}\n', encoding="utf-8")
    with pytest.raises(UserError, match=message) as caught:
        evalset.new(parse(["evalset", "new", "mine", *words.split()]))
    assert caught.value.advice
    assert not Path("mine").exists()
