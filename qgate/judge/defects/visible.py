"""Whether a text shows anything at all. Pure."""

from __future__ import annotations

import re

# Space, C0 and C1 controls, soft hyphen, fillers, zero-width and direction marks, separators, variation selectors, BOM.
_VISIBLE = re.compile(
    "[^\\s\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8]"
)
_HUSK = re.compile(r"\A\s*(?:<think(?:ing)?>\s*</think(?:ing)?>|```\w*\s*```)\s*\Z")


def has_visible(text: str) -> bool:
    """Whether some character of `text` leaves a mark on the page, and is not the husk of an empty thought or code block."""
    return _VISIBLE.search(text) is not None and _HUSK.match(text) is None
