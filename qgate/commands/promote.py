"""`qgate promote`: a checkpoint that its evidence speaks for in, the serving policy and the model card out."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from qgate.commands.verify import describe, refuse_overwriting, verified
from qgate.errors import ExitCode, UserError
from qgate.io.checkpoint import MODEL_CARD
from qgate.rooms import promote as room


def promote(arguments: argparse.Namespace) -> ExitCode:
    """Verify, write, and say what serves where. Raises Refused, UserError, StoreError."""
    refuse_overwriting(arguments.out, arguments.evidence, arguments.key)
    if arguments.out.resolve().is_relative_to(arguments.checkpoint.resolve()):
        advice = "a file more or another one there is not what was judged: name a place outside"
        raise UserError(f"--out {arguments.out} lies in the checkpoint", advice=advice)
    found = verified(arguments)
    policy = room.promote(found, arguments.out, datetime.now(UTC))
    sys.stdout.write(describe(found))
    for name, interface in policy.interfaces.items():
        backs = ", ".join(back.server for back in interface.fallbacks) or "nothing"
        sys.stdout.write(f"  {name}: serves {interface.server or 'nothing'}, falls back to {backs}\n")
    sys.stdout.write(f"  wrote {arguments.out} and {found.checkpoint / MODEL_CARD}\n")
    return ExitCode.PASS
