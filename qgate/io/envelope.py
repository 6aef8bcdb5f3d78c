"""Evidence files: a path in, the statement and its signatures out, unchecked. Reads the disk.

A file holds a bare statement, a DSSE envelope around it (https://github.com/secure-systems-lab/dsse), or a sigstore
bundle around that.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from qgate.errors import ArtefactError
from qgate.schemas.statement import PREDICATE_TYPE, STATEMENT_TYPE, Statement

MAX_BYTES = 64 << 20
"""A run of a hundred variants of a thousand files each is half of that."""
PAYLOAD_TYPE = "application/vnd.in-toto+json"
WHICH = "name the evidence.intoto.json of a run, or what `qgate sign` made of it"


@dataclass(frozen=True)
class Evidence:
    """A statement, the very bytes that it was read from, and who signed them."""

    sha256: str
    """Of the whole file."""
    statement: Statement
    payload: bytes
    payload_type: str = PAYLOAD_TYPE
    signatures: tuple[tuple[str, bytes], ...] = ()
    """Key id (a hint, possibly empty) and signature; none where the evidence is not signed."""
    bundle: bytes | None = None
    """The sigstore bundle that it came in, as read; None: it came in none."""


def read(path: Path) -> Evidence:
    """The evidence in `path`, signed or not. Raises ArtefactError where it is damaged or of another kind."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ArtefactError(f"cannot read {path}: {error.strerror}", advice=WHICH) from error
    if len(raw) > MAX_BYTES:
        raise ArtefactError(f"{path} is no evidence: it has more than {MAX_BYTES >> 20} MiB", advice=WHICH)
    value = _mapping(raw, path)
    sha256 = hashlib.sha256(raw).hexdigest()
    envelope = value.get("dsseEnvelope", value)
    if not isinstance(envelope, dict) or "payload" not in envelope:
        return Evidence(sha256, _statement(value, path), raw)
    try:
        payload = _bytes(envelope, "payload")
        signatures = tuple((str(each.get("keyid", "")), _bytes(each, "sig")) for each in envelope["signatures"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtefactError(f"the envelope in {path} is damaged: {error}", advice="fetch it again") from error
    kind = str(envelope.get("payloadType"))
    bundle = raw if "dsseEnvelope" in value else None
    return Evidence(sha256, _statement(_mapping(payload, path), path), payload, kind, signatures, bundle)


def _bytes(fields: Mapping[str, Any], name: str) -> bytes:
    """Base64 in either alphabet, as DSSE has it."""
    return b64decode(fields[name].replace("-", "+").replace("_", "/"), validate=True)


def _mapping(raw: bytes, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(raw, object_pairs_hook=_once, parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"{path} is not one JSON document: {error}", advice=WHICH) from error
    if not isinstance(value, dict):
        raise ArtefactError(f"{path} holds no in-toto statement", advice=WHICH)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a field that is there twice, one reader takes the first and another the last."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return fields


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _statement(value: dict[str, Any], path: Path) -> Statement:
    if value.get("_type") != STATEMENT_TYPE:
        raise ArtefactError(f"{path} holds no in-toto statement (_type: {value.get('_type')})", advice=WHICH)
    if value.get("predicateType") != PREDICATE_TYPE:
        raise ArtefactError(
            f"{path} is evidence of another kind: {value.get('predicateType')}, not {PREDICATE_TYPE}", advice=WHICH
        )
    try:
        return Statement.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise ArtefactError(
            f"{path} is damaged: {f'{place}: ' * bool(place)}{said}", advice="fetch it again"
        ) from error
