"""The worker that reads a hub's dataset, with a stand-in for `datasets`; and a set made through it."""

from __future__ import annotations

import json
import runpy
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from qgate.commands import evalset
from qgate.errors import EnvError, EvalsetError, ExitCode
from qgate.io import dataset, evalsets
from qgate.io.dataset import WORKER, HubDataset
from qgate.schemas.recipe import EvalsetUse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = [{"q": "What is 2+2?", "a": 4, "image": object()}, {"q": "What is 3+3?", "a": 6, "image": object()}]


class Stand:
    """`datasets.Dataset` as far as the worker uses it."""

    column_names = ("q", "a", "image")

    def __len__(self) -> int:
        return len(ROWS)

    def select_columns(self, columns: list[str]) -> list[dict[str, Any]]:
        return [{name: row[name] for name in columns} for row in ROWS]


class NotFound(FileNotFoundError):
    """datasets.exceptions.DatasetNotFoundError."""


class Hub:
    """What the stand-ins for `datasets` and `huggingface_hub` do, and what they were asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.error: Exception | None = None

    def load(self, name: str, config: str | None, *, split: str, revision: str) -> Stand:
        self.asked.append((name, config, split, revision))
        if self.error is not None:
            raise self.error
        return Stand()

    def dataset_info(self, name: str, *, revision: str) -> Namespace:
        self.asked.append((name, revision))
        if self.error is not None:
            raise self.error
        return Namespace(sha=COMMIT)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    found = Hub()
    modules = {name: ModuleType(name) for name in ("datasets", "datasets.exceptions", "huggingface_hub")}
    modules["datasets"].load_dataset = found.load  # type: ignore[attr-defined]
    modules["datasets.exceptions"].DatasetNotFoundError = NotFound  # type: ignore[attr-defined]
    modules["huggingface_hub"].HfApi = lambda: found  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(WORKER.parent)
    monkeypatch.delitem(sys.modules, "worker_frame", raising=False)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "5.2.0")
    return found


def work(folder: Path, **said: Any) -> tuple[int, dict[str, Any]]:
    """Exit code and result of the worker on a request."""
    request = {"dataset": "some/sums", "config": None, "split": "test", "revision": COMMIT, "columns": ["q", "a"]}
    (folder / "request.json").write_text(json.dumps(request | {"output": str(folder / "rows.jsonl")} | said))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", [str(WORKER), str(folder / "request.json"), str(folder / "result.json")])
        runpy.run_path(str(WORKER), run_name="__main__")
    code = ended.value.code
    assert isinstance(code, int)
    return code, json.loads((folder / "result.json").read_text())


def test_only_the_columns_that_are_mapped_are_written(tmp_path: Path, hub: Hub) -> None:
    code, result = work(tmp_path, config="main")
    assert code == 0
    assert result.items() >= {"num_rows": 2, "commit": COMMIT}.items()
    assert result["packages"] == {"datasets": "5.2.0"}
    assert hub.asked == [("some/sums", "main", "test", COMMIT)]
    written = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert written == [{"q": "What is 2+2?", "a": 4}, {"q": "What is 3+3?", "a": 6}]


def test_a_branch_becomes_the_commit_that_it_is(tmp_path: Path, hub: Hub) -> None:
    _, result = work(tmp_path, revision="main")
    assert hub.asked == [("some/sums", "main"), ("some/sums", None, "test", COMMIT)]
    assert result["commit"] == COMMIT


@pytest.mark.parametrize(
    ("said", "error", "message", "advice"),
    [
        ({"revision": "main"}, ConnectionError("no route"), "the hub cannot be asked: no route", "name a commit"),
        ({}, NotFound("not there"), f"no dataset some/sums at {COMMIT}", "only what HF_HOME has kept"),
        ({}, ConnectionError("no route"), "no dataset some/sums", "only what HF_HOME has kept"),
        ({}, ValueError('Unknown split "test"'), "split 'test': Unknown split", "--split"),
        ({"columns": ["q", "b"]}, None, "no column 'b'", "columns: q, a, image"),
        ({"columns": ["image"]}, None, "no text or number", "map other columns"),
    ],
)
def test_what_cannot_be_had_is_one_clear_message(
    tmp_path: Path, hub: Hub, said: dict[str, Any], error: Exception | None, message: str, advice: str
) -> None:
    hub.error = error
    code, result = work(tmp_path, **said)
    assert code == 1
    assert message in result["error"]
    assert advice in result["advice"]


def wanted(folder: Path, **said: Any) -> Namespace:
    base = {
        "folder": folder, "source": None, "dataset": "some/sums", "revision": "main", "split": None, "config": None,
        "map": ["prompt=q", "answer=a"], "scorer": "number", "limit": None, "env": "lm-eval", "description": "d",
        "license": "MIT", "skip_bad": False,
    }  # fmt: skip
    return Namespace(**base | said)


def test_a_set_of_a_hub_s_dataset_records_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"q": row["q"], "a": row["a"]} for row in ROWS]
    asked: list[HubDataset] = []

    def fetch(which: HubDataset, columns: list[str]) -> tuple[list[dict[str, Any]], str]:
        asked.append(which)
        assert columns == ["q", "a"]
        return rows, COMMIT

    monkeypatch.setattr(evalset, "fetch", fetch)
    assert evalset.new(wanted(tmp_path / "sums")) is ExitCode.PASS
    assert asked == [HubDataset("some/sums", "main", "test")]
    made = evalsets.load(EvalsetUse(name="sums"), tmp_path)
    assert [item.messages[0].content for item in made.items] == ["What is 2+2?", "What is 3+3?"]
    assert f"--revision {COMMIT}" in str(evalsets.read_manifest(tmp_path / "sums").generator)


def test_a_dataset_without_a_revision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalsetError, match="tomorrow it may be other rows"):
        evalset.new(wanted(tmp_path / "sums", revision=None))


def test_a_table_without_a_map_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("q,a\n")
    with pytest.raises(EvalsetError, match="which column is what"):
        evalset.new(wanted(tmp_path / "sums", dataset=None, source=tmp_path / "a.csv", map=[], revision=None))


def test_an_environment_that_is_not_built_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path))
    with pytest.raises(EnvError, match="'lm-eval' is not built") as caught:
        dataset.fetch(HubDataset("some/sums", "main", "test"), ["q"])
    assert caught.value.advice == "qgate env build lm-eval"
