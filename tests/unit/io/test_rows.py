"""Tables of every kind that is read: the same rows come out of each."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from qgate.errors import EvalsetError
from qgate.io import rows

ROWS = [{"question": "What is 2+2?", "answer": 4}, {"question": "守塔人在哪里？", "answer": 7}]


def arrow(path: Path, *, stream: bool) -> Path:
    table = pa.Table.from_pylist(ROWS)
    opened = pa.ipc.new_stream if stream else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as sink, opened(sink, table.schema) as writer:
        writer.write_table(table)
    return path


def write(folder: Path, kind: str) -> Path:
    """ROWS as a file or folder of this kind."""
    path, table = folder / f"data.{kind}", pa.Table.from_pylist(ROWS)
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n\n" for row in ROWS), encoding="utf-8")
    elif kind == "json":
        path.write_text(json.dumps(ROWS), encoding="utf-8")
    elif kind in {"csv", "tsv"}:
        pc.write_csv(table, path, pc.WriteOptions(delimiter="," if kind == "csv" else "\t"))
    elif kind == "parquet":
        pq.write_table(table, path)
    elif kind.startswith("arrow"):
        path = arrow(folder / "data.arrow", stream=kind == "arrow stream")
    elif kind == "folder of parquet":
        path = folder / "parts"
        path.mkdir()
        for number, row in enumerate(ROWS):
            pq.write_table(pa.Table.from_pylist([row]), path / f"{number}.parquet")
    else:
        path = folder / "saved"
        (path / "test").mkdir(parents=True)
        arrow(path / "test" / "data-00000-of-00001.arrow", stream=True)
        parts = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
        (path / "test" / "state.json").write_text(json.dumps(parts), encoding="utf-8")
        (path / "dataset_dict.json").write_text(json.dumps({"splits": ["test"]}), encoding="utf-8")
    return path


KINDS = (
    "jsonl",
    "json",
    "csv",
    "tsv",
    "parquet",
    "arrow stream",
    "arrow file",
    "folder of parquet",
    "saved by datasets",
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_rows(tmp_path: Path, kind: str) -> None:
    assert rows.read(write(tmp_path, kind), "test") == ROWS


def test_a_saved_folder_names_its_splits(tmp_path: Path) -> None:
    with pytest.raises(EvalsetError, match="holds the splits test"):
        rows.read(write(tmp_path, "saved by datasets"), "train")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl", b'{"q": 1}\n{"q": \n', "line 2: not JSON"),
        ("a.jsonl", b"[1]\n", "line 1: not a JSON object"),
        ("a.json", b'{"q": 1}', "not a list of objects"),
        ("a.parquet", b"no parquet", "cannot be read"),
        ("a.arrow", b"no arrow at all", "cannot be read"),
        ("a.xlsx", b"", "not a table that can be read"),
    ],
)
def test_what_is_no_table_is_told(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(EvalsetError, match=message) as caught:
        rows.read(tmp_path / name, None)
    assert name in caught.value.message


@pytest.mark.parametrize("name", ["dataset_dict.json", "state.json"])
def test_a_saved_folder_that_says_something_else_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(EvalsetError, match="cannot be read"):
        rows.read(tmp_path, "train")


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(EvalsetError, match="no file or folder") as caught:
        rows.read(tmp_path / "none.csv", None)
    assert caught.value.advice == "a dataset on the hub is named by --dataset"
    with pytest.raises(EvalsetError, match="holds no table"):
        rows.read(tmp_path, None)
