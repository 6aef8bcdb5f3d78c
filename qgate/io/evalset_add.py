"""An incident's report and a set's folder in, one item more in the set out, locked again. Touches the disk.

So that the gate asks it for ever. The set is made where there is none; the same request twice is one item.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgate.errors import IncidentError
from qgate.io import evalset_items, evalsets
from qgate.io.evalset_import import ANSWERED
from qgate.io.evalset_new import Terms, make
from qgate.io.evalsets import ITEMS, MANIFEST
from qgate.io.files import write_text
from qgate.judge.request_body import messages_of, sampling_of
from qgate.schemas.base import canonical_json, content_key
from qgate.schemas.evalset import EvalsetManifest, Item
from qgate.schemas.minimised import Body
from qgate.schemas.repro import Repro

DESCRIPTION = "Requests that once went wrong: an answer must come, without a defect"
LICENSE = "LicenseRef-internal"
DIFFICULTY = 3


@dataclass(frozen=True)
class Added:
    """The set after it."""

    manifest: EvalsetManifest
    item: str
    is_new: bool
    """False where the set had it already."""


def add(folder: Path, report: Repro, body: Body) -> Added:
    """Add the incident's request `body` to the set in `folder`. Raises IncidentError, EvalsetError, StoreError."""
    value = _item(report, body)
    if not (folder / MANIFEST).is_file():
        _check_free(folder)
        make(folder, (canonical_json(value) + "\n").encode(), "the incident", Terms(DESCRIPTION, LICENSE))
        return Added(evalsets.verify(folder), str(value["id"]), is_new=True)
    evalsets.verify(folder)
    path = folder / ITEMS
    data = path.read_bytes()
    item = Item.model_validate(value)
    for known in evalset_items.parse(data, str(path)):
        if known.messages == item.messages:
            return Added(evalsets.verify(folder), known.id, is_new=False)
    line = canonical_json(item.model_dump(exclude_none=True))
    write_text(path, data.decode().rstrip("\n") + "\n" + line + "\n")
    evalsets.lock(folder)
    return Added(evalsets.verify(folder), item.id, is_new=True)


def _check_free(folder: Path) -> None:
    """Raises IncidentError where something else is there already: it is nobody's to replace."""
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise IncidentError(
            f"{folder} is there already and is no evaluation set: it has no {MANIFEST}",
            advice="name a folder that is not there yet, or one that `qgate evalset` made",
        )


def _item(report: Repro, body: Body) -> dict[str, Any]:
    """The item: its defects are counted as those of every item, and its scorer is the incident's, where it names one."""
    turns = messages_of(body)
    if "messages" not in body:
        raise IncidentError(
            "an evaluation set holds chats, and this request is a raw prompt",
            advice="keep repro.sh in CI instead: it exits with 1 when the failure shows",
        )
    if turns[-1].role != "user":
        raise IncidentError("the last turn of the request is not the user's, which an item's must be")
    how, cause = report.incident.recognise, report.attribution.cause
    scorer = how.scorer.model_dump() if how.scorer else ANSWERED
    return {
        "id": f"incident-{content_key([turn.model_dump() for turn in turns])[:12]}",
        "messages": [turn.model_dump() for turn in turns],
        "kind": "incident",
        "language": how.language,
        "difficulty": DIFFICULTY,
        "scorer": scorer,
        "slices": {"cause": cause, "temperature": f"{sampling_of(body, 0).temperature:g}"},
        "max_tokens": sampling_of(body, 0).max_tokens,
    }
