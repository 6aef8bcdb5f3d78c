"""Secrets in recorded requests: a JSON value in, the same without keys and tokens out. Pure.

A value is removed where its field's name says that it is a secret, and inside any text where it looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

REMOVED = "[removed]"

_NAMES = re.compile(
    r"authorization|cookie|(^|[_-])(api[_-]?key|apikey|password|passwd|secret|credentials?|private[_-]?key)($|[_-])"
    r"|(^|[_-])(access|auth|refresh|bearer|session|id|csrf|hf)[_-]?token$|^token$"
    r"|(^|[_-])auth$",
    re.IGNORECASE,
)
_TEXTS = re.compile(
    r"""(?P<keep>\bBearer\s+|\bBasic\s+|\b(?:api[_-]?key|password|secret)["']?\s*[:=]\s*["']?
        |[?&](?:sig|signature|key|x-(?:amz|goog)-(?:signature|credential|security-token)|[a-z_-]*token)=)[A-Za-z0-9._~+/=%-]{8,}
      | \bsk-[A-Za-z0-9_-]{16,}                                     # OpenAI and its like
      | \bhf_[A-Za-z0-9]{16,}                                       # Hugging Face
      | \bgh[pousr]_[A-Za-z0-9]{16,} | \bgithub_pat_[A-Za-z0-9_]{16,}
      | \b(?:gsk|xai|pplx|npm|nvapi|glpat)[_-][A-Za-z0-9_-]{16,}
      | (?<=://)[^\s/:@"']+:[^\s/@"']+(?=@)                           # user and password of an address
      | \bxox[abeoprs]-[A-Za-z0-9-]{10,}                            # Slack
      | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b                               # AWS
      | \bAIza[A-Za-z0-9_-]{30,}                                    # Google
      | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}  # JSON web token
      | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def redact(value: Any) -> tuple[Any, int]:
    """`value` (JSON types) without its secrets, and how many were removed."""
    if isinstance(value, str):
        return _TEXTS.subn(lambda match: f"{match['keep'] or ''}{REMOVED}", value)
    if isinstance(value, list):
        pairs = [redact(part) for part in value]
        return [part for part, _ in pairs], sum(num for _, num in pairs)
    if isinstance(value, dict):
        return _mapping(value)
    return value, 0


def redact_words(words: Sequence[str]) -> tuple[list[str], int]:
    """A command's words without the values of options and variables that are named like a secret, and how many."""
    clean: list[str] = []
    total, follows = 0, False
    for word in words:
        name, has_value, value = word.partition("=")
        is_secret = _NAMES.search(name.lstrip("-")) is not None
        if follows or (is_secret and value):
            clean.append(REMOVED if follows else f"{name}={REMOVED}")
            total += REMOVED not in word
        else:
            text, num = redact(word)
            clean.append(text)
            total += num
        follows = not follows and is_secret and word.startswith("-") and not has_value
    return clean, total


def _mapping(value: dict[str, Any]) -> tuple[dict[str, Any], int]:
    clean: dict[str, Any] = {}
    total = 0
    for name, part in value.items():
        if _NAMES.search(name) and part not in (None, "", REMOVED):
            clean[name], num = REMOVED, 1
        else:
            clean[name], num = redact(part)
        total += num
    return clean, total
