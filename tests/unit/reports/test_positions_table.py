from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qgate.errors import ArtefactError
from qgate.judge.tokens import TokenTable
from qgate.reports import positions_table
from qgate.schemas.evidence import Row
from tests.unit.judge.made import row

ROWS = tuple(row(item=number) for number in range(3))
COUNTS = (2, 1, 4)


def table(rows: tuple[Row, ...] = ROWS, counts: tuple[int, ...] = COUNTS, num_expected: int = 5) -> TokenTable:
    generator = np.random.default_rng(0)
    columns = {name: generator.random(sum(counts)) for name in ("kl", "disagree", "drop", "log_drop", "covered")}
    columns["kl"][0] = np.nan
    return TokenTable(
        rows=rows,
        answer=np.repeat(np.arange(len(rows)), counts),
        position=np.concatenate([np.arange(count) for count in counts]),
        num_expected=num_expected,
        **columns,
    )


def test_tables_come_back_in_half_precision(tmp_path: Path) -> None:
    made = {"w8a8": table(), "baseline#1": table(ROWS[:2], COUNTS[:2], 2)}
    pq.write_table(positions_table.build(made), tmp_path / "positions.parquet")
    found = positions_table.read(pq.read_table(tmp_path / "positions.parquet"), ROWS)
    assert found.keys() == made.keys()
    for arm, expected in made.items():
        assert found[arm].rows == expected.rows
        assert found[arm].num_expected == expected.num_expected
        assert np.array_equal(found[arm].answer, expected.answer)
        assert np.array_equal(found[arm].position, expected.position)
        for name in ("kl", "disagree", "drop", "log_drop", "covered"):
            np.testing.assert_allclose(getattr(found[arm], name), getattr(expected, name), rtol=1e-3)


def test_an_arm_of_which_nothing_was_scored_stays_an_arm() -> None:
    empty = TokenTable((), *(np.zeros(0, dtype=np.int64) for _ in range(2)), *(np.zeros(0) for _ in range(5)), 7)
    found = positions_table.read(positions_table.build({"awq": empty}), ROWS)
    assert (found["awq"].rows, found["awq"].num_expected, found["awq"].kl.size) == ((), 7, 0)


def test_other_tables_newer_ones_and_strangers_rows_are_refused() -> None:
    made = positions_table.build({"w8a8": table()})
    with pytest.raises(ArtefactError, match="not a qgate table of positions"):
        positions_table.read(pa.table({"arm": ["w8a8"]}), ROWS)
    newer = made.replace_schema_metadata({**made.schema.metadata, b"qgate.version": b"2"})
    with pytest.raises(ArtefactError, match="version 2, newer than 1"):
        positions_table.read(newer, ROWS)
    with pytest.raises(ArtefactError, match="not among the rows"):
        positions_table.read(made, ROWS[:1])
