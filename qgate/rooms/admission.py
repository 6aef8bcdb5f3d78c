"""A checkpoint that is about to be served in; its inspection noted, and why it is refused, out. Reads the disk.

Headers, settings and scales are looked at, not the weights: seconds at most, before a server takes minutes to fail.
"""

from __future__ import annotations

from qgate.inspection.config import REMOTE_CODE
from qgate.io import artefact
from qgate.reports.inspection import sentence
from qgate.rooms.inspect import inspect
from qgate.rooms.prepare import Prepared
from qgate.rooms.work import Work
from qgate.schemas.inspection import Inspection, Severity
from qgate.schemas.recipe import BASELINE

FOLDER = "inspections"
TRUSTING = "--trust-remote-code"
"""In the engine's `args`: the recipe says that a checkpoint's own code may be run."""


def admit(prepared: Prepared, work: Work, name: str) -> str | None:
    """None where the checkpoint `name` may be served; else what is wrong with it. Raises CheckpointError, StoreError."""
    baseline = None if name == BASELINE else work.checkpoints[BASELINE].path
    size = getattr(prepared.options(name), "tensor_parallel_size", 1)
    found = inspect(work.checkpoints[name].path, baseline, tensor_parallel_size=size)
    if TRUSTING in getattr(prepared.options(name), "args", ()):
        asked = tuple(finding for finding in found.findings if finding.code != REMOTE_CODE.name)
        found = found.model_copy(update={"findings": asked})
    work.inspections[name] = found
    artefact.save(prepared.folder / FOLDER / f"{name}.json", found)
    return refusal(found)


def refusal(found: Inspection) -> str | None:
    """The first error with its fix, and how many more there are; None where there is no error."""
    if not found.errors:
        return None
    first, more = found.errors[0], len(found.errors) - 1
    rest = f" ({more} more: {', '.join(error.code for error in found.errors[1:])})" if more else ""
    return f"its checkpoint is refused: {sentence(first)}{rest}; fix: {first.fix}"


def told(work: Work) -> list[str]:
    """Every warning, a sentence each, with all the checkpoints that it holds of."""
    who: dict[str, list[str]] = {}
    for name, inspection in sorted(work.inspections.items()):
        for finding in inspection.findings:
            if finding.severity is Severity.WARNING:
                who.setdefault(sentence(finding), []).append(name)
    return [f"{', '.join(names)}: {said}." for said, names in who.items()]
