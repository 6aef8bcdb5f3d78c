"""An incident as a dictionary in, what `qgate repro` finds out. For tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from qgate import repro
from qgate.commands.progress import QuietWatcher
from qgate.io import incident
from qgate.io.store import Store
from qgate.schemas.repro import Repro, Suspect

CAUSES: frozenset[str] = frozenset(get_args(Suspect))


def request(text: str, *, temperature: float = 0.0, max_tokens: int = 24) -> dict[str, Any]:
    """A chat of one turn."""
    messages = [{"role": "user", "content": text}]
    return {"body": {"model": "m", "messages": messages, "temperature": temperature, "max_tokens": max_tokens}}


def side(checkpoint: Path, engine: str, **options: Any) -> dict[str, Any]:
    """What answers."""
    return {"checkpoint": {"path": str(checkpoint)}, "engine": engine, "options": options}


def found(results: Path, name: str, filed: dict[str, Any], *, calls: int | None = 0) -> Repro:
    """The report of an incident; `calls` is what minimising may take."""
    path = results / f"{name}.json"
    path.write_text(json.dumps({"kind": "incident", "version": 1, **filed}), encoding="utf-8")
    wishes = repro.Wishes(calls=calls)
    return repro.run(incident.load(path), results / "repro" / name, Store(results), QuietWatcher(), wishes).report


def only(report: Repro, cause: str, *, confidence: str = "high") -> None:
    """Fails unless `cause` is named so surely, by the experiment that shows it, and all others are excluded or left open."""
    said = report.attribution
    states = {suspicion.cause: suspicion.state for suspicion in said.suspicions}
    assert set(states) == CAUSES
    assert said.cause == cause, said.summary
    assert said.confidence == confidence, said.would_raise
    assert {name for name, state in states.items() if state == "shown"} == {cause}
    assert next(suspicion.because for suspicion in said.suspicions if suspicion.cause == cause) in said.summary
