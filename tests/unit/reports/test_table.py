import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qgate.errors import ArtefactError
from qgate.reports import table
from tests.unit.reports import sample

ROWS = sample.bundle(600).rows


def test_there_and_back_through_parquet():
    buffer = io.BytesIO()
    pq.write_table(table.build(ROWS), buffer)
    buffer.seek(0)
    assert table.read(pq.read_table(buffer)) == ROWS


def test_twins_and_excused_defects_come_back():
    rows = (replace(ROWS[0], excused=("empty",), family="clean-1"), replace(ROWS[0], excused=(), family=None))
    assert table.read(table.build(rows)) == rows


def test_the_first_version_is_read_as_not_knowing_them():
    old = table.build(ROWS).drop_columns(["excused", "family", "written"])
    old = old.replace_schema_metadata({b"qgate.kind": table.KIND, b"qgate.version": b"1"})
    assert table.read(old) == tuple(replace(row, excused=None, family=None) for row in ROWS)


def test_options_that_were_only_ranked_come_back_as_such():
    rows = (replace(ROWS[0], written=False), ROWS[0])
    assert table.read(table.build(rows)) == rows


def test_the_second_version_is_read_as_having_written_everything():
    old = table.build(ROWS).drop_columns(["written"])
    old = old.replace_schema_metadata({b"qgate.kind": table.KIND, b"qgate.version": b"2"})
    assert table.read(old) == ROWS


def test_why_an_answer_did_not_come_is_kept_and_older_tables_do_not_say_it():
    lost = (replace(ROWS[0], status="error", score=None, text=None, error="HTTP 429: slow \ud800 down"),)
    (found,) = table.read(table.build(lost))
    assert found.error == "HTTP 429: slow \ufffd down"
    old = table.build(lost).drop_columns(["error"])
    old = old.replace_schema_metadata({b"qgate.kind": table.KIND, b"qgate.version": b"3"})
    assert table.read(old) == (replace(lost[0], error=None),)


def test_pandas_reads_it():
    frame = table.build(ROWS).to_pandas()
    assert len(frame) == len(ROWS)
    assert frame["score"].isna().sum() == sum(row.score is None for row in ROWS)
    assert set(frame["slice_length"].dropna()) == {"1k", "16k", "4k", "short", "medium", "long"} & set(
        frame["slice_length"]
    )
    loops = frame[frame["defects"].map(lambda names: "repetition_loop" in names)]
    assert len(loops) == sum(any(hit.name == "repetition_loop" for hit in row.defects) for row in ROWS) > 0
    assert frame.groupby("variant")["score"].mean()["gptq"] < frame.groupby("variant")["score"].mean()["w8a8"]


def test_the_schema_does_not_depend_on_the_rows():
    empty, full = table.build([]), table.build(ROWS)
    assert empty.num_rows == 0
    assert [(field.name, field.type) for field in full.schema if not field.name.startswith("slice_")] == [
        (field.name, field.type) for field in empty.schema
    ]
    assert table.read(empty) == ()


def test_texts_are_kept_byte_for_byte_and_lone_surrogates_replaced():
    hostile = "\x00\u202e<script>\r\n\x1b[2J 包裹 👩‍🚀"
    rows = [replace(ROWS[0], text=hostile), replace(ROWS[0], text="a\ud800b")]
    assert [row.text for row in table.read(table.build(rows))] == [hostile, "a\ufffdb"]


def test_another_table_or_a_newer_one_is_refused():
    with pytest.raises(ArtefactError, match="not a qgate table"):
        table.read(pa.table({"a": [1]}))
    newer = table.build(ROWS[:1]).replace_schema_metadata({b"qgate.kind": table.KIND, b"qgate.version": b"99"})
    with pytest.raises(ArtefactError, match=f"newer than {table.VERSION}"):
        table.read(newer)
