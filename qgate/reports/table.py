"""answers.parquet: one row per answer, readable by pandas, and back. Pure: rows in, an Arrow table out, or the reverse.

Columns are Row's fields in order, with `slices` spread over `slice_<key>` and `defects` as three lists of equal length:
`defects` (names), `defect_starts` (character offsets) and `defect_details`. Text is kept as it came, except for lone
surrogates, which no UTF-8 file can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from qgate.errors import ArtefactError
from qgate.reports.visible import storable
from qgate.schemas.evidence import DefectHit, Row

KIND = b"answers_table"
VERSION = 4
"""1 had no `excused` and no `family`; 2 had no `written`, which was true of every row; 3 had no `error`."""
_SLICE = "slice_"
_NAMES = pa.list_(pa.string())
_COLUMNS: dict[str, pa.DataType] = {
    "variant": pa.string(),
    "replicate": pa.int32(),
    "evalset": pa.string(),
    "item": pa.string(),
    "profile": pa.string(),
    "seed": pa.int64(),
    "temperature": pa.float64(),
    "kind": pa.string(),
    "language": pa.string(),
    "difficulty": pa.int8(),
    "status": pa.string(),
    "finish_reason": pa.string(),
    "score": pa.float64(),
    "text": pa.large_string(),
    "prompt_tokens": pa.int32(),
    "completion_tokens": pa.int32(),
    "identical": pa.bool_(),
    "first_divergence": pa.int32(),
    "similarity": pa.float64(),
    "latency_s": pa.float64(),
    "baseline_nll": pa.float64(),
    "excused": _NAMES,
    "family": pa.string(),
    "written": pa.bool_(),
    "error": pa.string(),
}
_DEFECTS: dict[str, tuple[str, pa.DataType]] = {
    "defects": ("name", _NAMES),
    "defect_starts": ("start", pa.list_(pa.int32())),
    "defect_details": ("detail", _NAMES),
}


def build(rows: Iterable[Row]) -> pa.Table:
    """The table of `rows`, in their order; a slice that a row lacks is null."""
    rows = tuple(rows)
    arrays = {name: _column(rows, name, kind) for name, kind in _COLUMNS.items()}
    for name, (attribute, kind) in _DEFECTS.items():
        arrays[name] = pa.array([[_kept(getattr(hit, attribute)) for hit in row.defects] for row in rows], type=kind)
    for key in sorted({key for row in rows for key in row.slices}):
        arrays[_SLICE + key] = pa.array([row.slices.get(key) for row in rows], type=pa.string())
    metadata = {b"qgate.kind": KIND, b"qgate.version": str(VERSION).encode()}
    return pa.table(arrays).replace_schema_metadata(metadata)


def read(table: pa.Table) -> tuple[Row, ...]:
    """The rows of a table that `build` made. Raises ArtefactError where it is another kind or a newer version."""
    metadata = table.schema.metadata or {}
    if metadata.get(b"qgate.kind") != KIND:
        raise ArtefactError("this table is not a qgate table of answers", advice="pass a run's answers.parquet")
    version = int(metadata.get(b"qgate.version", b"0"))
    if version > VERSION:
        raise ArtefactError(f"the table of answers has version {version}, newer than {VERSION}", advice="update qgate")
    return tuple(_row(record) for record in table.to_pylist())


def _column(rows: Sequence[Row], name: str, kind: pa.DataType) -> pa.Array:
    return pa.array([_kept(getattr(row, name)) for row in rows], type=kind)


def _kept(value: Any) -> Any:
    return storable(value) if isinstance(value, str) else value


def _row(record: dict[str, Any]) -> Row:
    hits = zip(record["defects"], record["defect_starts"], record["defect_details"], strict=True)
    slices = {
        key.removeprefix(_SLICE): value for key, value in record.items() if key.startswith(_SLICE) and value is not None
    }
    fields: dict[str, Any] = {name: record.get(name) for name in _COLUMNS}
    fields["written"] = fields["written"] is not False
    fields["excused"] = None if fields["excused"] is None else tuple(fields["excused"])
    return Row(**fields, slices=slices, defects=tuple(DefectHit(*hit) for hit in hits))
