"""truncation: runs into the token limit where the baseline stops. A view in, a hit or None out. Pure."""

from __future__ import annotations

from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "truncation"
SUMMARY = "runs into the token limit where the baseline's answer ends by itself"


def detect(view: View) -> DefectHit | None:
    """The end of the text; nothing where the baseline's answer is unknown or was cut too."""
    reference = view.seen.reference
    if reference is None or not view.seen.cut or not reference.stopped:
        return None
    tokens = view.seen.completion_tokens
    detail = "at the token limit" if tokens is None else f"at {tokens} tokens"
    if reference.completion_tokens is not None:
        detail += f"; the baseline stops after {reference.completion_tokens}"
    return DefectHit(NAME, max(0, len(view.text) - 1), detail)
