"""stray_token: a few letters of another script inside good text. A view in, a hit or None out. Pure."""

from __future__ import annotations

from qgate.judge.defects.language_switch import switched
from qgate.judge.defects.token_salad import is_salad
from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "stray_token"
SUMMARY = "a few letters of another script inside otherwise good text"
_AROUND = 10


def detect(view: View) -> DefectHit | None:
    """The first foreign token, unless it is the start of something larger."""
    if not view.foreign.stretches or is_salad(view) or switched(view) is not None:
        return None
    first = view.foreign.stretches[0]
    if view.foreign.unspoken and not _touches_letter(view.text, first.start, first.stop):
        return None
    around = view.text[max(0, first.start - _AROUND) : first.stop + _AROUND]
    return DefectHit(NAME, first.start, f"{first.script} in {around!r}")


def _touches_letter(text: str, start: int, stop: int) -> bool:
    return text[max(0, start - 1) : start].isalpha() or text[stop : stop + 1].isalpha()
