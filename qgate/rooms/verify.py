"""A checkpoint, evidence and what is demanded in; the variant that it is out, or the reasons against. Reads the disk."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from qgate.errors import CheckpointError, Refused
from qgate.io import checkpoint as checkpoints
from qgate.io import envelope, hashes, keyless, signing
from qgate.judge.promotion import Demand, Promotion, weigh

Signer = Path | keyless.Identity | None
"""Who must have signed: the owner of a public key, an identity, or nobody in particular."""


def verify(folder: Path, evidence: Path, demand: Demand, now: datetime, signer: Signer = None) -> Promotion:
    """Hash every file again and hold it against the evidence. Raises Refused, ArtefactError, CheckpointError."""
    found = envelope.read(evidence)
    signature = _signature(found, signer)
    if not folder.is_dir():
        raise CheckpointError(f"no checkpoint directory at {folder}", advice="name the directory to be promoted")
    try:
        records = hashes.afresh(checkpoints.files(folder))
    except OSError as error:
        raise CheckpointError(f"{error.filename} cannot be read: {error.strerror}") from error
    files = {path.relative_to(folder).as_posix(): record for path, record in records.items()}
    weighed = weigh(found.statement, files, demand, now)
    if weighed.refusals or weighed.variant is None:
        reasons = "".join(f"\n  - {reason}" for reason in weighed.refusals)
        raise Refused(f"{folder} may not be promoted:{reasons}")
    return Promotion(folder, weighed.variant, demand.tiers, found.statement, found.sha256, signature)


def _signature(found: envelope.Evidence, signer: Signer) -> str:
    if isinstance(signer, Path):
        return f"signed with {signing.check(found, signer)[:16]}…, the key in {signer}"
    if signer is not None:
        return f"signed by {keyless.check(found, signer)}, as {signer.issuer} vouches"
    if found.signatures:
        return "signed, but the signature was not checked: pass --key or --identity"
    return "UNSIGNED: anybody may have edited the evidence"
