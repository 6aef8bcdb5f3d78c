"""What `qgate selftest` and the data cards need of a run of recipes/damage.yaml: a run's folder in, four small files out.

    python results/power/collect.py results/runs/damage-20261129-180000 OUT

OUT/run.json           what ran: checkpoints, engine, versions
OUT/rows.parquet       a row per answer, without its text
OUT/positions.parquet  token metrics per position of the answers that were scored
OUT/answers.parquet    the baseline's own greedy answers, for the data cards

Reads the run's folder and the stored objects beside it; needs no model and no GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from qgate.io import artefact
from qgate.io.score_log import read_scores
from qgate.judge.arms import FLOOR
from qgate.judge.tokens import TokenTable
from qgate.judge.tokens import table as token_table
from qgate.reports import positions_table, table
from qgate.schemas.answers import TokenScores
from qgate.schemas.evidence import DefectHit, Row
from qgate.schemas.recipe import BASELINE
from qgate.schemas.run import Run

PARQUET = {"compression": "zstd", "compression_level": 19}


def main() -> None:
    """Collect."""
    parser = argparse.ArgumentParser(description="The evidence of a run of recipes/damage.yaml, made small.")
    parser.add_argument("run", type=Path, help="the run's folder")
    parser.add_argument("out", type=Path, help="folder to write")
    args = parser.parse_args()
    run = artefact.load(args.run / "run.json", Run)
    rows = table.read(pq.read_table(args.run / "answers.parquet"))
    tables = token_tables(run, args.run.parent.parent / "objects", rows)
    args.out.mkdir(parents=True, exist_ok=True)
    artefact.save(args.out / "run.json", run)
    pq.write_table(table.build(map(without_text, rows)), args.out / "rows.parquet", **PARQUET)
    halves = {f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in ("kl", "drop", "log_drop", "covered")}
    made = positions_table.build(tables)
    texts = [name for name in made.column_names if f"{name}.list.element" not in halves]
    pq.write_table(made, args.out / "positions.parquet", use_dictionary=texts, column_encoding=halves, **PARQUET)
    pq.write_table(demo_answers(rows), args.out / "answers.parquet", **PARQUET)
    for file in sorted(args.out.iterdir()):
        print(f"{file.stat().st_size:>10,} {file}")


def without_text(row: Row) -> Row:
    """What a verdict reads of a row; texts, times and the words of defects are left out."""
    defects = tuple(DefectHit(hit.name) for hit in row.defects)
    return replace(row, text=None, latency_s=0.0, similarity=None, defects=defects)


def token_tables(run: Run, objects: Path, rows: Iterable[Row]) -> dict[str, TokenTable]:
    """Token metrics by arm, of the baseline's answers forced through it."""
    scores: dict[str, dict[str, TokenScores]] = {}
    for arm in run.arms:
        if arm.step != "score":
            continue
        mine = scores.setdefault(f"{arm.variant}#{arm.replicate}" if arm.replicate else arm.variant, {})
        found = {each.id: each for each in read_scores(objects / "token_scores" / arm.key)}
        if mine.keys() & found.keys():
            raise SystemExit(f"{arm.variant} scored {arm.evalset} twice: the recipe must have `garble: false`")
        mine |= found
    reference = [row for row in rows if row.variant == BASELINE and row.replicate == 0]
    base = scores.pop(BASELINE)
    made = {arm: token_table(reference, base, mine) for arm, mine in scores.items()}
    if FLOOR not in made or None in made.values():
        raise SystemExit(f"arms without token scores: {[arm for arm, each in made.items() if each is None] or FLOOR}")
    return {arm: each for arm, each in made.items() if each is not None}


def demo_answers(rows: Iterable[Row]) -> pa.Table:
    """`evalset`, `id` and `text` of what the baseline answered greedily, the first time."""
    chosen = [row for row in rows if (row.variant, row.replicate, row.temperature) == (BASELINE, 0, 0.0)]
    return pa.table(
        {
            "evalset": pa.array([row.evalset for row in chosen], pa.string()),
            "id": pa.array([row.item for row in chosen], pa.string()),
            "text": pa.array([row.text or "" for row in chosen], pa.string()),
        }
    )


if __name__ == "__main__":
    main()
