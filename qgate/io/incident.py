"""An incident file (YAML or JSON) in, a validated incident out: paths absolute, engine options checked. Reads the disk."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from qgate.crosscheck import Problem
from qgate.errors import IncidentError, RecipeError
from qgate.io.files import write_text
from qgate.io.recipe import absolute_source
from qgate.io.redact import redact, redact_words
from qgate.io.validation import Document
from qgate.io.yaml_tree import Dumper, parse
from qgate.judge.defects import DEFECTS
from qgate.levers import Launched, load_isolating
from qgate.ports import load_engine
from qgate.schemas.incident import Incident, Reference, Side
from qgate.schemas.repro import Arm

MAX_BYTES = 16 << 20
HEADER = "# An incident for `qgate repro`; the fields are those of `qgate schema --incident`.\n"


@dataclass(frozen=True)
class LoadedSide:
    """What answers in one arm: its engine's validated options, and what its launch arguments say beside them."""

    side: Side
    options: BaseModel
    launched: Launched


@dataclass(frozen=True)
class LoadedIncident:
    """An incident and the bytes that it came from. Every path is absolute."""

    incident: Incident
    written: Incident
    """The same with paths as they were written."""
    path: Path
    sha256: str
    sides: Mapping[Arm, LoadedSide]
    reference: tuple[Reference, BaseModel] | None
    """The other engine and its options, where the incident names one."""


def load(path: Path) -> LoadedIncident:
    """Read and validate. Raises IncidentError with every problem found (up to eight), each with its line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise IncidentError(
            f"cannot read the incident {path}: {error.strerror}", advice="`qgate repro new` makes one"
        ) from error
    try:
        document = Document(path.name, parse(data, path.name, max_bytes=MAX_BYTES, finite=False), IncidentError)
    except RecipeError as error:
        raise IncidentError(error.message, advice="`qgate repro new` makes a valid one") from error
    incident = _alike(_without_secrets(_incident(document)))
    sides: dict[Arm, LoadedSide] = {"candidate": _side(document, incident.candidate, "candidate")}
    if incident.baseline is not None:
        sides["baseline"] = _side(document, incident.baseline, "baseline")
    return LoadedIncident(
        incident=_absolute(incident, path.resolve().parent),
        written=_publishable(incident),
        path=path.resolve(),
        sha256=hashlib.sha256(data).hexdigest(),
        sides={arm: _absolute_side(side, path.resolve().parent) for arm, side in sides.items()},
        reference=_reference(document, incident.reference),
    )


def save(path: Path, incident: Incident) -> None:
    """Write an incident as YAML, whole or not at all; only what it says. Raises StoreError."""
    said, defaults = incident.model_dump(mode="json", exclude_unset=True), _DEFAULTS
    value = {name: part for name, part in said.items() if part != defaults.get(name)}
    head = {"kind": incident.kind, "version": incident.version}
    text = yaml.dump(head | value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    write_text(path, HEADER + text)


_DEFAULTS = {name: field.get_default() for name, field in Incident.model_fields.items() if not field.is_required()}
INHERITED = ("engine", "env", "options", "launch")
"""What a baseline that does not say otherwise has from the candidate: both are served under equal conditions."""
OF_ONE_CHECKPOINT = ("--quantization", "-q")
"""Launch arguments that speak of the candidate's weights only."""


class _Dumper(Dumper):
    """Writes texts of several lines as blocks, so that a prompt can be read."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _incident(document: Document) -> Incident:
    incident = document.validate(Incident, document.fields("an incident", "version"), ())
    unknown = [name for name in incident.recognise.defects if name not in DEFECTS]
    if unknown:
        known = ", ".join(sorted(DEFECTS))
        raise document.refusal(
            [Problem(("recognise", "defects"), f"no defect named {unknown[0]!r}", f"known: {known}")]
        )
    return incident


def _without_secrets(incident: Incident) -> Incident:
    """What somebody wrote by hand may hold a key: everything that is passed on is without, and it is counted."""
    request, num = redact(incident.request.body)
    fields = {"answer": incident.answer, "log": incident.log, "title": incident.title, "tried": list(incident.tried)}
    clean, more = redact(fields)
    update = {**clean, "tried": tuple(clean["tried"]), "secrets_removed": incident.secrets_removed + num + more}
    update["request"] = incident.request.model_copy(update={"body": request})
    return incident.model_copy(update=update) if num + more else incident


def _publishable(incident: Incident) -> Incident:
    """Without the keys that the servers are started with: what is left behind is passed on."""
    removed = incident.secrets_removed
    update: dict[str, Any] = {}
    for arm in ("candidate", "baseline"):
        side: Side | None = getattr(incident, arm)
        if side is not None:
            words, num = redact_words(_words(side.launch))
            options, more = redact(side.options)
            launch = shlex.join(words) if isinstance(side.launch, str) else tuple(words)
            update[arm] = side.model_copy(update={"launch": launch, "options": options}) if num + more else side
            removed += num + more
    return incident.model_copy(update={**update, "secrets_removed": removed})


def _alike(incident: Incident) -> Incident:
    """The baseline served as the candidate is, as far as it does not say otherwise."""
    candidate, baseline = incident.candidate, incident.baseline
    if baseline is None or baseline.checkpoint is None or candidate.checkpoint is None:
        return incident
    if baseline.engine not in {None, candidate.engine}:
        return incident
    unsaid = [name for name in INHERITED if name not in baseline.model_fields_set]
    if baseline.model_fields_set & {"options", "launch"}:
        unsaid = [name for name in unsaid if name not in {"options", "launch"}]
    update = {name: getattr(candidate, name) for name in unsaid if name in candidate.model_fields_set}
    if "launch" in update:
        update["launch"] = _of_any_checkpoint(update["launch"])
    return incident.model_copy(update={"baseline": baseline.model_copy(update=update)})


def _of_any_checkpoint(launch: Sequence[str] | str) -> tuple[str, ...]:
    words = iter(_words(launch))
    kept: list[str] = []
    for word in words:
        if word in OF_ONE_CHECKPOINT:
            next(words, None)
        elif word.partition("=")[0] not in OF_ONE_CHECKPOINT:
            kept.append(word)
    return tuple(kept)


def _words(launch: Sequence[str] | str) -> list[str]:
    return shlex.split(launch) if isinstance(launch, str) else list(launch)


def _side(document: Document, side: Side, arm: str) -> LoadedSide:
    with document.naming((arm, "engine")):
        engine = load_engine(side.engine_name)
        isolating = load_isolating(side.engine_name)
    words = _words(side.launch)
    launched = Launched(options={})
    if words and isolating is None:
        raise document.refusal([Problem((arm, "launch"), f"the engine {side.engine_name} takes no launch arguments")])
    if words and isolating is not None:
        try:
            launched = isolating.launched(words)
        except ValueError as error:
            raise document.refusal([Problem((arm, "launch"), str(error))]) from error
    options = document.validate(engine.options, _options(side, launched), (arm, "options"))
    return LoadedSide(side, options, launched)


def _options(side: Side, launched: Launched) -> dict[str, Any]:
    if side.url is None:
        return {**launched.options, **side.options}
    return {"base_url": side.url, "model": side.model, "api_key_env": side.api_key_env}


def _reference(document: Document, reference: Reference | None) -> tuple[Reference, BaseModel] | None:
    if reference is None:
        return None
    with document.naming(("reference", "engine")):
        engine = load_engine(reference.engine)
    return reference, document.validate(engine.options, reference.options, ("reference", "options"))


def _absolute(incident: Incident, base: Path) -> Incident:
    update: dict[str, Any] = {"candidate": _placed(incident.candidate, base)}
    if incident.baseline is not None:
        update["baseline"] = _placed(incident.baseline, base)
    return incident.model_copy(update=update)


def _absolute_side(loaded: LoadedSide, base: Path) -> LoadedSide:
    return LoadedSide(_placed(loaded.side, base), loaded.options, loaded.launched)


def _placed(side: Side, base: Path) -> Side:
    if side.checkpoint is None:
        return side
    return side.model_copy(update={"checkpoint": absolute_source(side.checkpoint, base)})
