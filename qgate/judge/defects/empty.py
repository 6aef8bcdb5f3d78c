"""empty: tokens were made, or a stop came at once, and there is nothing to read. A view in, a hit or None out. Pure."""

from __future__ import annotations

from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit
from qgate.wording import counted

NAME = "empty"
SUMMARY = "nothing to read: no text, or blanks and invisible characters only, and no tool call"


def detect(view: View) -> DefectHit | None:
    """The whole answer, unless the prompt asks for silence."""
    if not view.is_blank or view.is_excused_blank or view.wishes.nothing:
        return None
    tokens = view.seen.completion_tokens
    made = "" if tokens is None else f" after {counted(tokens, 'token')}"
    block = "an empty thought or code block" if view.text.strip()[:1] in {"<", "`"} else None
    what = "no text" if not view.text else block or f"{len(view.text)} invisible characters"
    return DefectHit(NAME, 0, what + made)
