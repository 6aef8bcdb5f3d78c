"""Scorers: an answer, arguments and a language in, a score in [0, 1] out. Pure: no disk, clock, network, random state.

Arguments are checked before the answer is read: wrong ones raise ValueError. A malformed answer scores 0. A leading
`<think>…</think>` block is not part of the answer.
"""

from __future__ import annotations

from typing import Any

from qgate.errors import PluginError
from qgate.scorers.builtin import BuiltIn
from qgate.scorers.constraints import CONSTRAINTS
from qgate.scorers.exact import CHOICE, EXACT
from qgate.scorers.likeness import BLEU, CHRF, SIMILARITY, TER
from qgate.scorers.longform import ENUMERATION, FREE_TEXT
from qgate.scorers.number import NUMBER
from qgate.scorers.overlap import ROUGE, TOKEN_F1
from qgate.scorers.presence import CONTAINS_ALL, ORDERED
from qgate.wording import near_or_known

_BUILT_IN: tuple[BuiltIn[Any], ...] = (
    BLEU, CHOICE, CHRF, CONSTRAINTS, CONTAINS_ALL, ENUMERATION, EXACT, FREE_TEXT, NUMBER, ORDERED, ROUGE,
    SIMILARITY, TER, TOKEN_F1,
)  # fmt: skip
_TABLE = {scorer.name: scorer for scorer in _BUILT_IN}

NAMES: tuple[str, ...] = tuple(sorted(_TABLE))
"""Names of the built-in scorers."""


def load(name: str) -> BuiltIn[Any]:
    """The built-in scorer `name`, callable as (text, args, language). Raises PluginError with the near match."""
    if name not in _TABLE:
        raise PluginError(f"no scorer named {name!r}", advice=near_or_known(name, NAMES, "built in"))
    return _TABLE[name]
