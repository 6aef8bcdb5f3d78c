"""repetition_loop: the answer repeats itself without end. A view in, a hit or None out. Pure."""

from __future__ import annotations

from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "repetition_loop"
SUMMARY = "repeats a phrase, a line or a symbol without end, though neither prompt nor baseline does"
_SHOWN = 60


def detect(view: View) -> DefectHit | None:
    """The loop, from its first copy on."""
    loop = view.loop
    if loop is None:
        return None
    unit = loop.unit if len(loop.unit) <= _SHOWN else f"{loop.unit[:_SHOWN]}…"
    how = "" if loop.exact else " with small changes"
    return DefectHit(NAME, loop.start, f"{unit!r} × {loop.repeats:.0f}{how}, {loop.share:.0%} of the text")
