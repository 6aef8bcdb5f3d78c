"""`qgate verify` and `qgate sign`: whether the bytes about to be promoted are those that were judged, and passed."""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from qgate.errors import ExitCode, UserError
from qgate.io import envelope, keyless, signing
from qgate.io.files import write_text
from qgate.judge.promotion import Demand, Promotion, span
from qgate.reports.visible import one_line
from qgate.rooms.verify import Signer
from qgate.rooms.verify import verify as hold_against

GITHUB_ISSUER = "https://token.actions.githubusercontent.com"
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def verify(arguments: argparse.Namespace) -> ExitCode:
    """Say what the checkpoint is and passed for. Raises Refused, UserError."""
    sys.stdout.write(describe(verified(arguments)))
    return ExitCode.PASS


def verified(arguments: argparse.Namespace) -> Promotion:
    """The checkpoint of `arguments`, held against its evidence. Raises Refused, UserError."""
    demand = Demand(
        tiers=tuple(dict.fromkeys(arguments.tier)),
        evalsets=tuple(arguments.evalset),
        max_age=None if arguments.max_age is None else duration(arguments.max_age),
    )
    return hold_against(arguments.checkpoint, arguments.evidence, demand, datetime.now(UTC), _signer(arguments))


def _signer(arguments: argparse.Namespace) -> Signer:
    if arguments.identity is None:
        if arguments.issuer or arguments.trusted_root:
            raise UserError("--issuer and --trusted-root go with --identity", advice="say who must have signed")
        key: Path | None = arguments.key
        return key
    if arguments.issuer is None:
        raise UserError(
            "--identity needs --issuer: another provider may vouch for the same name",
            advice=f"for GitHub Actions: --issuer {GITHUB_ISSUER}",
        )
    return keyless.Identity(arguments.identity, arguments.issuer, arguments.trusted_root)


def describe(found: Promotion) -> str:
    """Three lines for a person. What the evidence says stays in its line."""
    said = found.statement.predicate
    age = span(datetime.now(UTC) - said.finished_at)
    lines = (
        f"{found.checkpoint} is {found.variant} ({said.variants[found.variant].precision}), byte for byte as judged",
        f"passed for {', '.join(found.tiers)} in run {said.run_id}, {age} ago, with the engine {said.engine}",
        f"evidence: {found.signature}",
    )
    return "\n  ".join(map(one_line, lines)) + "\n"


def duration(text: str) -> timedelta:
    """`30d`, `12h`, `2w`. Raises UserError."""
    match = re.fullmatch(r"(\d{1,6})([hdw])", text)
    if match is None:
        raise UserError(f"{text!r} is no length of time", advice="write hours, days or weeks: 12h, 30d, 2w")
    return int(match[1]) * _UNITS[match[2]]


def sign(arguments: argparse.Namespace) -> ExitCode:
    """Write the signed evidence beside the bare one. Raises UserError, ArtefactError, WorldError."""
    if arguments.trust_config and not arguments.keyless:
        raise UserError("--trust-config goes with --keyless", advice="a key needs no sigstore")
    output: Path = arguments.out or arguments.evidence.with_suffix(".sigstore.json" if arguments.keyless else ".jsonl")
    refuse_overwriting(output, arguments.key)
    evidence = envelope.read(arguments.evidence)
    if arguments.keyless:
        text, who = keyless.sign(evidence, arguments.trust_config)
    else:
        signed, keyid = signing.sign(evidence, arguments.key)
        text, who = json.dumps(signed), f"{keyid[:16]}…"
    write_text(output, f"{text}\n")
    sys.stdout.write(f"{output}: signed {'by' if arguments.keyless else 'with'} {who}\n")
    return ExitCode.PASS


def refuse_overwriting(output: Path, *inputs: Path | None) -> None:
    """Raises UserError where what is to be written is what was read."""
    if any(given is not None and given.resolve() == output.resolve() for given in inputs):
        raise UserError(f"--out {output} would overwrite what is read", advice="name another file")
