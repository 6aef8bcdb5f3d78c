"""Whether an answer shows an incident's failure, by the standard library alone: this file is copied into repro.py.

Coarser than qgate's detectors, on purpose: it must say yes to the answers that were recorded as failed, and no to the
others, and `qgate repro` counts how often it does.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from typing import Any


def shows_failure(text: str, finish_reason: str | None, how: dict[str, Any]) -> list[str]:
    """Whether the failure shows. `how`: defects, likeness and the answers it is measured to, regex, finish_reason."""
    found = [name for name in how.get("defects", ()) if name in _CHECKS and _CHECKS[name](text)]
    if how.get("regex") and re.search(how["regex"], text):
        found.append("the pattern is found")
    if how.get("finish_reason") and finish_reason == how["finish_reason"]:
        found.append("ends by " + str(finish_reason))
    for known in how.get("known", ()):
        alike = difflib.SequenceMatcher(None, known[:4000], text[:4000], autojunk=False).ratio()
        if text and alike >= how.get("likeness", 0.8):
            found.append("like an answer that failed")
            break
    return found


def _loops(text: str) -> bool:
    """The end repeats itself at least four times, over at least a quarter of the text."""
    found = re.search(r"(?s)(.{2,400}?)\1{3,}.{0,400}$", text[-6000:])
    return found is not None and len(found.group()) > len(text[-6000:]) / 4


def _floods(text: str) -> bool:
    return re.search(r"(?s)(\S{1,4}\s?)\1{19,}", text) is not None


def _mojibake(text: str) -> bool:
    return "\ufffd" in text or re.search(r"Ã[\x80-\xbf©¤¶¼]|â€|ðŸ", text) is not None


def _salad(text: str) -> bool:
    """Letters of three alphabets or more."""
    scripts: dict[str, int] = {}
    for character in text:
        if character.isalpha():
            script = unicodedata.name(character, "?").split(" ")[0]
            scripts[script] = scripts.get(script, 0) + 1
    return len(scripts) >= 3


def _leaks(text: str) -> bool:
    return (
        re.search(r"<\|[a-z_]+\|>|\[/?INST\]|(?:^|\n)(?:user|assistant|system|User|Assistant|Human):?\s*(?:\n|$)", text)
        is not None
    )


def _empty(text: str) -> bool:
    return not text.strip()


_CHECKS = {
    "repetition_loop": _loops,
    "token_flood": _floods,
    "mojibake": _mojibake,
    "token_salad": _salad,
    "stray_token": _salad,
    "language_switch": _salad,
    "role_leak": _leaks,
    "empty": _empty,
}
