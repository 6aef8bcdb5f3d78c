"""token_flood: one token fills the answer, as NaN logits make it. A view in, a hit or None out. Pure."""

from __future__ import annotations

from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "token_flood"
SUMMARY = "one token fills the whole answer (`!!!!!!`, `<pad><pad>`), as after NaN logits"
_MAX_TOKEN_CHARS, _LEAST_COPIES, _LEAST_SHARE = 20, 16, 0.9


def detect(view: View) -> DefectHit | None:
    """A loop of one token from the start or almost."""
    loop = view.loop
    if loop is None or not loop.exact or loop.share < _LEAST_SHARE or loop.repeats < _LEAST_COPIES:
        return None
    if len(loop.unit) > _MAX_TOKEN_CHARS or (len(loop.unit.split()) > 1 and loop.unit.strip().count(" ") > 0):
        return None
    return DefectHit(NAME, loop.start, f"{loop.unit!r} × {loop.repeats:.0f}")
