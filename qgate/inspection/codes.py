"""What kinds of finding there are: each check's module defines its own, `catalogue` has them all. Pure.

`error` only where no engine can serve the checkpoint rightly: whatever an engine takes, and the gate can measure, is a
warning at most, for the gate says how much is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qgate.schemas.inspection import Finding, Severity

NUM_SHOWN = 4
ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True)
class Code:
    """A kind of finding: its stable name, how grave it is, what it breaks and what to do."""

    name: str
    severity: Severity
    breaks: str
    fix: str

    def at(self, places: str | Iterable[str], detail: str) -> Finding:
        """A finding of this kind at one place, or at several (at least one)."""
        every = (places,) if isinstance(places, str) else tuple(places)
        return Finding(
            severity=self.severity,
            code=self.name,
            places=every[:NUM_SHOWN],
            num_places=len(every),
            detail=detail,
            breaks=self.breaks,
            fix=self.fix,
        )
