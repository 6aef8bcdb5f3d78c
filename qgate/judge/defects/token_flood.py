"""token_flood: one token fills the answer, as NaN logits make it. A view in, a hit or None out. Pure."""

from __future__ import annotations

import re

from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "token_flood"
SUMMARY = "one token fills the whole answer (`!!!!!!`, `<pad><pad>`), as after NaN logits"
_LEAST_COPIES, _LEAST_SHARE, _MOST_BEFORE = 16, 0.9, 1
_ONE_TOKEN = re.compile(r"\s?(?:\w{1,20}|[^\w\s]{1,8}|<[|\w]{1,20}>|\[\w{1,20}\])\s?")


def detect(view: View) -> DefectHit | None:
    """A loop of one token from the start or almost."""
    loop = view.loop
    if loop is None or not loop.exact or loop.share < _LEAST_SHARE or loop.repeats < _LEAST_COPIES:
        return None
    if loop.start > _MOST_BEFORE or _ONE_TOKEN.fullmatch(loop.unit) is None:
        return None
    return DefectHit(NAME, loop.start, f"{loop.unit!r} × {loop.repeats:.0f}")
