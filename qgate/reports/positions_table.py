"""positions.parquet: token metrics per position, one row per arm and answer, and back. Pure: tables in, an Arrow table out.

`kl`, `disagree`, `drop`, `log_drop` and `covered` are lists over the answer's tokens, as `judge.tokens.TokenTable` has
them, in half precision: three digits, a sixth of the scores that they were made of. Which answers the baseline had scored
(also where an arm then did not) stands in the table's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from qgate.errors import ArtefactError
from qgate.judge.tokens import TokenTable
from qgate.schemas.evidence import Row

KIND = b"positions_table"
VERSION = 1
_METRICS = ("kl", "disagree", "drop", "log_drop", "covered")
_KEYS: dict[str, pa.DataType] = {
    "arm": pa.string(),
    "evalset": pa.string(),
    "item": pa.string(),
    "profile": pa.string(),
    "seed": pa.int64(),
}


def build(tables: Mapping[str, TokenTable]) -> pa.Table:
    """The Arrow table of every arm's token table, in order of arm and answer."""
    keys: dict[str, list[Any]] = {name: [] for name in _KEYS}
    values: dict[str, list[Any]] = {name: [] for name in _METRICS}
    for arm, table in sorted(tables.items()):
        ends = np.cumsum(np.bincount(table.answer, minlength=len(table.rows)))
        for row in table.rows:
            for name, value in zip(_KEYS, (arm, *row.pair), strict=True):
                keys[name].append(value)
        for name in _METRICS:
            values[name] += np.split(getattr(table, name).astype(np.float16), ends)[: len(ends)]
    columns = {name: pa.array(keys[name], type=kind) for name, kind in _KEYS.items()}
    columns |= {name: pa.array(values[name], type=pa.list_(pa.float16())) for name in _METRICS}
    expected = json.dumps({arm: table.num_expected for arm, table in sorted(tables.items())})
    metadata = {b"qgate.kind": KIND, b"qgate.version": str(VERSION).encode(), b"qgate.expected": expected.encode()}
    return pa.table(columns).replace_schema_metadata(metadata)


def read(table: pa.Table, rows: Sequence[Row]) -> dict[str, TokenTable]:
    """Token tables by arm of what `build` made; `rows` are the reference's answers.

    Raises ArtefactError where it is another kind, a newer version, or has answers that `rows` lack.
    """
    metadata = table.schema.metadata or {}
    if metadata.get(b"qgate.kind") != KIND:
        raise ArtefactError("this table is not a qgate table of positions", advice="pass a positions.parquet")
    version = int(metadata.get(b"qgate.version", b"0"))
    if version > VERSION:
        raise ArtefactError(
            f"the table of positions has version {version}, newer than {VERSION}", advice="update qgate"
        )
    expected: dict[str, int] = json.loads(metadata[b"qgate.expected"])
    by_pair = {row.pair: row for row in rows}
    arms = np.array(table["arm"].to_pylist())
    return {arm: _arm(table.filter(pa.array(arms == arm)), by_pair, expected[arm]) for arm in sorted(expected)}


def _arm(table: pa.Table, by_pair: Mapping[tuple[str, str, str, int], Row], num_expected: int) -> TokenTable:
    pairs = list(zip(*(table[name].to_pylist() for name in list(_KEYS)[1:]), strict=True))
    lacking = [pair for pair in pairs if pair not in by_pair]
    if lacking:
        raise ArtefactError(f"the table of positions has an answer that is not among the rows: {lacking[0]}")
    counts = table["kl"].combine_chunks().value_lengths().to_numpy()
    metrics = {name: table[name].combine_chunks().flatten().to_numpy().astype(np.float64) for name in _METRICS}
    return TokenTable(
        rows=tuple(by_pair[pair] for pair in pairs),
        answer=np.repeat(np.arange(len(pairs)), counts),
        position=np.concatenate([np.arange(count) for count in counts]) if len(counts) else np.zeros(0, np.int64),
        num_expected=num_expected,
        **metrics,
    )
