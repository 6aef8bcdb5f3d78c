"""Finished arms in, what served them out, and what a reader must know of it. Reads the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from qgate.errors import ArtefactError
from qgate.io.store import MARKER
from qgate.ports import Attached, Engine
from qgate.rooms.arms import Arm
from qgate.rooms.work import Work
from qgate.schemas.answers import EngineFacts
from qgate.wording import counted

ALIKE = ("model_runner", "attention", "sampler")
"""Kinds of kernels that quantization does not choose: between variants they should be the same."""


def facts_by_variant(work: Work) -> dict[str, EngineFacts]:
    """The facts of each variant's last answering server, with the notes on every server that answered or scored for it."""
    by_variant: dict[str, list[Arm]] = defaultdict(list)
    for (variant, *_), arm in (
        *work.forced.items(),
        *work.references.items(),
        *work.ranked.items(),
        *work.generated.items(),
    ):
        by_variant[variant].append(arm)
    found: dict[str, EngineFacts] = {}
    for variant, arms in by_variant.items():
        if sessions := _sessions(arms):
            notes = dict.fromkeys(note for facts in sessions for note in facts.notes)
            found[variant] = sessions[-1].model_copy(update={"notes": tuple(notes)})
    return found


def _sessions(arms: Iterable[Arm]) -> list[EngineFacts]:
    """One of each server, as it was after the last arm that it did; in the order of the arms."""
    found: dict[object, EngineFacts] = {}
    for arm in arms:
        with suppress(ArtefactError):
            facts = arm.facts
            key = (facts.start_s, facts.argv)
            found.pop(key, None)
            found[key] = facts
    return list(found.values())


def findings(found: Mapping[str, EngineFacts]) -> list[str]:
    """Each note once, with all that it holds of; and where the servers differ in what should be the same."""
    who: dict[str, list[str]] = {}
    for name, facts in found.items():
        for note in facts.notes:
            who.setdefault(note, []).append(name)
    return [f"{', '.join(names)}: {note}." for note, names in who.items()] + list(_unlike(found))


def not_asked(engine: Engine, work: Work) -> Iterable[str]:
    """Whose answers or scores are stored ones of a server that is somebody else's: it may serve another model by now."""
    if not isinstance(engine, Attached):
        return
    stored: dict[str, list[Arm]] = defaultdict(list)
    for place in (work.generated, work.ranked, work.references, work.forced, work.under_baseline):
        for arm in place.values():
            if arm.record.cached:
                stored[arm.record.variant].append(arm)
    for name, arms in stored.items():
        first = datetime.fromtimestamp(min((arm.folder / MARKER).stat().st_mtime for arm in arms), UTC)
        yield (
            f"{name}: the server was not asked in this run for {counted(len(arms), 'step')} whose answers were stored "
            f"before, first on {first:%Y-%m-%d %H:%M} UTC: what was judged is what it served then."
        )


def _unlike(found: Mapping[str, EngineFacts]) -> Iterable[str]:
    for kind in ALIKE:
        used = {name: facts.kernels[kind] for name, facts in found.items() if kind in facts.kernels}
        if len(set(used.values())) > 1:
            each = ", ".join(f"{name} {value}" for name, value in used.items())
            yield f"The {kind.replace('_', ' ')} is not the same everywhere ({each}): answers may differ by it alone."
