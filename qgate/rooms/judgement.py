"""Evidence in, the verdict sheet out: judged at most once for the same evidence, recipe and judge. Touches the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from qgate.io import artefact
from qgate.io.files import sha256_files
from qgate.judge.verdict import judge
from qgate.keys import judge_key
from qgate.rooms.prepare import Prepared
from qgate.rooms.work import Work
from qgate.schemas.evidence import Evidence, Row
from qgate.schemas.verdict import VerdictSheet

FILE = "verdict.json"
CODE = Path(__file__).resolve().parent.parent
JUDGING = ("judge", "schemas")
"""Packages whose source decides what the judge makes of the same evidence."""


def judge_once(prepared: Prepared, work: Work, evidence: Evidence) -> VerdictSheet:
    """The sheet of this run. Raises StoreError, ArtefactError."""
    recipe, run_id = prepared.loaded.written, prepared.folder.name
    key = judge_key(
        recipe.model_dump(mode="json", exclude={"model", "evalsets", "description"}),
        rows=_rows_sha256(evidence.rows),
        token_scores=sorted(arm.record.key for arm in (*work.forced.values(), *work.references.values())),
        rest={"engine": evidence.engine, "precisions": dict(evidence.precisions), "invalid": dict(evidence.invalid)},
        code=_code_sha256(),
    )

    def make(folder: Path) -> None:
        artefact.save(folder / FILE, judge(evidence, prepared.loaded.recipe, run_id))

    folder = prepared.store.obtain("verdicts", key, make)
    return artefact.load(folder / FILE, VerdictSheet).model_copy(update={"run_id": run_id})


def _rows_sha256(rows: Iterable[Row]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode(errors="surrogatepass"))
    return digest.hexdigest()


def _code_sha256() -> str:
    files = sorted(file for package in JUDGING for file in (CODE / package).rglob("*.py"))
    return sha256_files(files)
