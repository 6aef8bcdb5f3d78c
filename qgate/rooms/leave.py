"""What was found about an incident in, a folder that somebody else can go on from out. Writes disk.

repro.json repro.md repro.sh repro.py incident.yaml logs/, and rate.svg where something was minimised
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from qgate import __version__
from qgate.io import artefact, host
from qgate.io import incident as incident_file
from qgate.io.files import write_text
from qgate.io.incident import LoadedIncident
from qgate.judge.factors import AS_FILED
from qgate.judge.request_body import left_out, unread
from qgate.reports import repro_markdown, repro_script
from qgate.reports.rate_picture import as_svg
from qgate.rooms.lab import Lab
from qgate.schemas.answers import EngineFacts
from qgate.schemas.minimised import Minimised
from qgate.schemas.repro import Arm, Attribution, Experiment, FileDifference, Repro
from qgate.wording import counted


@dataclass(frozen=True)
class Found:
    """Everything that the report is made of."""

    loaded: LoadedIncident
    lab: Lab
    attribution: Attribution
    differences: tuple[FileDifference, ...]
    rate: float
    started: datetime
    minimised: Minimised | None
    minimal: tuple[Experiment, ...]
    not_isolated: tuple[str, ...]


def leave(found: Found, folder: Path) -> Repro:
    """Write every file and return the report. Raises StoreError."""
    report = _report(found)
    script = repro_script.make(report)
    write_text(folder / "repro.sh", script.shell)
    write_text(folder / "repro.py", script.python)
    write_text(folder / "repro.md", repro_markdown.render(report, script.checked))
    if report.minimised is not None and (picture := as_svg(report.minimised.rate_map)):
        write_text(folder / "rate.svg", picture)
    incident_file.save(folder / "incident.yaml", found.loaded.written)
    artefact.save(folder / "repro.json", report)
    for name in ("work", "views"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return report


def _report(found: Found) -> Repro:
    lab, incident = found.lab, found.loaded.written
    filed = lab.find(AS_FILED)
    assert filed is not None
    return Repro(
        title=incident.title,
        incident=incident,
        incident_sha256=found.loaded.sha256,
        qgate_version=__version__,
        started_at=found.started.isoformat(timespec="seconds"),
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        attribution=found.attribution,
        recognised_by=lab.recogniser.in_words(),
        rate_to_detect=found.rate,
        excluded_rate=None if filed.failures else filed.high,
        request=lab.asks["candidate"].body,
        experiments=tuple(lab.experiments),
        differences=found.differences,
        not_isolated=found.not_isolated,
        checkpoints={arm: _checkpoint(lab, arm) for arm in lab.sides.checkpoints},
        facts=_facts(lab),
        host=host.describe(),
        minimised=found.minimised,
        minimal=found.minimal,
        notes=tuple(_notes(found)),
    )


def _checkpoint(lab: Lab, arm: Arm) -> dict[str, str]:
    found = lab.sides.checkpoints[arm]
    return {"precision": found.precision, "digest": found.digest}


def _facts(lab: Lab) -> Mapping[Arm, EngineFacts]:
    asked = {each.arm for each in lab.experiments if each.factor == AS_FILED and each.ran}
    found = {arm: lab.replayer.facts(lab.sides.setups[arm]) for arm in lab.sides.setups if arm in asked}
    return {arm: facts for arm, facts in found.items() if facts is not None}


def _notes(found: Found) -> list[str]:
    """What a reader must know of how it was asked."""
    incident, lab = found.loaded.written, found.lab
    notes = list(lab.notes)
    filed = lab.experiments[0]
    if filed.failures and filed.temperature == 0 and filed.distinct_texts == 1:
        notes.append(f"all {filed.tries} tries as filed are one greedy answer: nothing is known of other prompts")
    if num := incident.secrets_removed:
        notes.append(f"taken out of the incident: {counted(num, 'secret')}")
    missing = left_out(incident.request.body)
    if missing and incident.candidate.url is not None:
        notes.append(f"the request leaves out {', '.join(missing)}: the server's own defaults decide, unseen")
    elif missing:
        values = ", ".join(f"{name} {lab.asks['candidate'].body.get(name)}" for name in missing)
        notes.append(f"the request leaves these out, and both arms were sent the candidate's defaults: {values}")
    engines = sorted({setup.engine.name for setup in lab.sides.setups.values()})
    if len(engines) > 1:
        notes.append(f"the arms were served by different engines: {', '.join(engines)}")
    if fields := unread(incident.request):
        engines = sorted({each.engine for each in lab.experiments if each.engine in {"transformers", "fake"}})
        notes += [f"not obeyed by the engine {engine}: {', '.join(fields)}" for engine in engines]
    notes += [f"left out of the launch arguments: {', '.join(s.launched.left_out)}"
              for s in found.loaded.sides.values() if s.launched.left_out]  # fmt: skip
    return notes
