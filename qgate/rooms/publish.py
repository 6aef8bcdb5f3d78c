"""A judged run in, its folder of reports out. Writes disk.

recipe.yaml run.json verdict.json evidence.intoto.json report.html junit.xml summary.md comment.md answers.parquet logs/
"""

from __future__ import annotations

import io
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from qgate import __version__
from qgate.io import artefact, evalsets, host
from qgate.io.files import write_bytes, write_text
from qgate.reports import html, junit, markdown, statement, table
from qgate.reports.bundle import ReportBundle
from qgate.rooms import servers
from qgate.rooms.admission import told
from qgate.rooms.prepare import Prepared
from qgate.rooms.work import Work
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.evidence import Evidence
from qgate.schemas.recipe import BASELINE
from qgate.schemas.run import ArmRecord, Run
from qgate.schemas.statement import JudgedSet
from qgate.schemas.verdict import VerdictSheet


def publish(
    prepared: Prepared, work: Work, evidence: Evidence, sheet: VerdictSheet, started: datetime
) -> tuple[Run, VerdictSheet]:
    """Write every report of a run and return what they were drawn from. Raises StoreError."""
    run = _run(prepared, work, started)
    findings = (
        *sheet.findings,
        *_same_bytes(work),
        *told(work),
        *servers.findings(run.engine_facts),
        *servers.not_asked(prepared.engine, work),
    )
    sheet = sheet.model_copy(update={"summary": _summary(work, run, sheet), "findings": findings})
    # lm-eval's are tokens, not the chat that a report's reader would send
    requests = {name: request for name, request in prepared.bench.requests.items() if request.prompt is None}
    bundle = ReportBundle(run, sheet, evidence.rows, prepared.loaded.written, requests)
    folder = prepared.folder
    write_text(folder / "recipe.yaml", prepared.loaded.text)
    write_text(folder / "report.html", html.render(bundle))
    write_text(folder / "junit.xml", junit.render(run, sheet))
    write_text(folder / "summary.md", markdown.render(run, sheet))
    write_text(folder / "comment.md", markdown.comment(run, sheet))
    write_text(folder / "evidence.intoto.json", statement.render(bundle, _judged_sets(prepared)))
    buffer = io.BytesIO()
    pq.write_table(table.build(evidence.rows), buffer)
    write_bytes(folder / "answers.parquet", buffer.getvalue())
    artefact.save(folder / "run.json", run)
    artefact.save(folder / "verdict.json", sheet)
    shutil.rmtree(folder / "work", ignore_errors=True)
    return run, sheet


def _run(prepared: Prepared, work: Work, started: datetime) -> Run:
    places = (work.generated, work.ranked, work.references, work.forced, work.under_baseline)
    loaded = prepared.loaded
    return Run(
        run_id=prepared.folder.name,
        qgate_version=__version__,
        started_at=started.isoformat(timespec="seconds"),
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        recipe_name=loaded.recipe.name,
        recipe_sha256=loaded.sha256,
        host=host.describe(),
        evalsets={s.full_name: s.sha256 for s in prepared.evalsets.values()},
        checkpoints={name: _portable(prepared, found) for name, found in work.checkpoints.items()},
        engine_facts=servers.facts_by_variant(work),
        arms=tuple(arm.record for place in places for arm in place.values()),
        timings_s={**work.timings_s, "total": (datetime.now(UTC) - started).total_seconds()},
        failures=dict(work.failures),
        notes=(*(tasks.told for tasks in prepared.tasks.values()), *prepared.store.notes),
    )


def _same_bytes(work: Work) -> list[str]:
    """Variants that are the baseline under another name: what passes then is not what the recipe says."""
    baseline = work.checkpoints[BASELINE].digest
    same = [name for name, found in work.checkpoints.items() if name != BASELINE and found.digest == baseline]
    return [f"{name} is the baseline byte for byte: nothing was quantized." for name in same]


def _portable(prepared: Prepared, checkpoint: Checkpoint) -> Checkpoint:
    """With a path that says nothing of this machine: below the results or the recipe's folder, else its last part."""
    path = checkpoint.path.resolve()
    roots = [root for root in (prepared.store.root.resolve(), prepared.loaded.base) if path.is_relative_to(root)]
    told = path.relative_to(roots[0]) if roots else Path(path.name)
    source = {key: str(told) if key == "path" else value for key, value in checkpoint.source.items()}
    return checkpoint.model_copy(update={"path": told, "source": source})


def _judged_sets(prepared: Prepared) -> dict[str, JudgedSet]:
    """By `name@version`: what was used of each set, and how much there is of it."""
    found = {}
    for use, judged in zip(prepared.loaded.recipe.evalsets, prepared.evalsets.values(), strict=True):
        if use.lm_eval is None:
            whole = evalsets.read_manifest(evalsets.resolve(use.name, prepared.loaded.base)).num_items
        else:
            whole = sum(fact.num_docs for fact in prepared.tasks[use.name].facts.tasks.values())
        found[judged.full_name] = JudgedSet(sha256=judged.sha256, num_items=len(judged.items), num_items_in_set=whole)
    return found


def _summary(work: Work, run: Run, sheet: VerdictSheet) -> dict[str, Any]:
    """Per variant: what the judge measured, and what it costs to keep and to serve."""
    merged: dict[str, Any] = {}
    for name, checkpoint in work.checkpoints.items():
        measured: dict[str, Any] = sheet.summary.get(name, {})
        merged[name] = {
            **measured,
            "precision": checkpoint.precision,
            "bits_per_weight": checkpoint.bits_per_weight,
            "weight_bytes": checkpoint.weight_bytes,
            "tokens_per_s": _tokens_per_s([arm for arm in run.arms if arm.variant == name and arm.step == "generate"]),
        }
    return merged


def _tokens_per_s(arms: list[ArmRecord]) -> float | None:
    """Generated tokens per second of wall time, over the arms whose time is known."""
    timed = [(arm.completion_tokens, arm.wall_s) for arm in arms if arm.wall_s]
    seconds = sum(wall_s for _, wall_s in timed)
    return sum(tokens for tokens, _ in timed) / seconds if seconds else None
