"""Tables on disk: a file or folder in, its rows out. Touches the disk.

Read are .jsonl, .json (a list of objects), .csv, .tsv, .parquet, .arrow, a folder of parquet files, and what
`datasets` saves to disk: a folder with state.json, or one with dataset_dict.json and a folder for each split.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from qgate.errors import EvalsetError

Row = dict[str, Any]
TABLES = (".csv", ".tsv", ".parquet", ".arrow")
"""Suffixes of files that can be nothing but a table."""


def read(source: Path, split: str | None) -> list[Row]:
    """Every row of `source`, in its order. Raises EvalsetError."""
    if not source.exists():
        raise EvalsetError(f"no file or folder {source}", advice="a dataset on the hub is named by --dataset")
    try:
        return _folder(source, split) if source.is_dir() else _file(source)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, RecursionError) as error:
        first, _, _ = str(error).partition("\n")
        raise EvalsetError(f"{source} cannot be read: {first or type(error).__name__}") from error


def _file(path: Path) -> list[Row]:
    readers: dict[str, Callable[[Path], list[Row]]] = {
        ".jsonl": _json_lines,
        ".json": _json_list,
        ".csv": lambda file: _rows(pc.read_csv(file)),
        ".tsv": lambda file: _rows(pc.read_csv(file, parse_options=pc.ParseOptions(delimiter="\t"))),
        ".parquet": lambda file: _rows(pq.read_table(file)),
        ".arrow": lambda file: _rows(_arrow(file)),
    }
    if path.suffix not in readers:
        raise EvalsetError(f"{path}: not a table that can be read", advice=f"give one of {', '.join(readers)}")
    return readers[path.suffix](path)


def _folder(folder: Path, split: str | None) -> list[Row]:
    if (folder / "dataset_dict.json").is_file():
        splits = json.loads((folder / "dataset_dict.json").read_text(encoding="utf-8"))["splits"]
        if split not in splits:
            raise EvalsetError(f"{folder} holds the splits {', '.join(splits)}", advice="name one by --split")
        folder = folder / str(split)
    if (folder / "state.json").is_file():
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        return [row for part in state["_data_files"] for row in _rows(_arrow(folder / part["filename"]))]
    parts = sorted(folder.glob("*.parquet"))
    if not parts:
        raise EvalsetError(
            f"{folder} holds no table", advice="name a file, or a folder of parquet files or of `datasets`"
        )
    return [row for part in parts for row in _rows(pq.read_table(part))]


def _arrow(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as mapped:
        try:
            return pa.ipc.open_stream(mapped).read_all()
        except pa.ArrowInvalid:
            return pa.ipc.open_file(mapped).read_all()


def _rows(table: pa.Table) -> list[Row]:
    found: list[Row] = table.to_pylist()
    return found


def _json_lines(path: Path) -> list[Row]:
    return [
        _object(line, f"line {n}") for n, line in enumerate(path.read_bytes().split(b"\n"), start=1) if line.strip()
    ]


def _json_list(path: Path) -> list[Row]:
    value = json.loads(path.read_bytes())
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise ValueError("not a list of objects")
    return value


def _object(line: bytes, where: str) -> Row:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{where}: not a JSON object")  # noqa: TRY004 (of the input's, like the others)
    return value
