"""token_salad: unrelated tokens of many scripts instead of sentences. A view in, a hit or None out. Pure."""

from __future__ import annotations

from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "token_salad"
SUMMARY = "unrelated tokens of several scripts instead of sentences"
_LEAST_SYSTEMS = 3


def is_salad(view: View) -> bool:
    """Whether three or more writing systems that nothing asks for take turns."""
    return len(view.foreign.systems) >= _LEAST_SYSTEMS


def detect(view: View) -> DefectHit | None:
    """From the first foreign token on."""
    if not is_salad(view):
        return None
    return DefectHit(NAME, view.foreign.stretches[0].start, "mixes " + ", ".join(sorted(view.foreign.systems)))
