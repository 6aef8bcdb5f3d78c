"""The built-in scorers and checks as a page of Markdown, drawn from their own argument models. Pure."""

from __future__ import annotations

import json
from typing import Any

from qgate import scorers
from qgate.schemas.base import Frozen
from qgate.scorers import checks

_HEAD = """# Scorers

An item names a scorer and its arguments: `"scorer": {"name": "number", "args": {"value": 42}}`. A scorer gives an answer
a score in [0, 1], always the same one for the same answer. A leading `<think>…</think>` block is not part of the answer,
a malformed answer scores 0, and wrong arguments are refused before anything runs. Your own scorer is a function
`(text, args, language) -> float` under the entry point `qgate.scorers`. Where its arguments hold a right answer in full, a
method `reference(args)` may give it, as `exact`, `number`, `choice`, the scorers of likeness (the first of `values`) and
`contains_all` with one phrase do: token evidence forces it through every checkpoint.

Texts are compared after normalisation: NFKC, folded case, one kind of digit, quote and dash, single spaces, no Arabic
vowel marks, ё as е. Words match whole in scripts that separate them by spaces and as substrings in the others.
"""
_CHECKS = """
# Checks of `constraints`

`{"checks": [{"name": "punctuation:no_comma"}, {"name": "keywords:existence", "args": {"keywords": ["lamp"]}}]}`. Names
are IFEval's where the check asks the same.
"""


def markdown() -> str:
    """The page, with a final newline."""
    return _HEAD + _entries("##", scorers.NAMES, scorers.load) + _CHECKS + _entries("##", checks.NAMES, checks.find)


def _entries(mark: str, names: tuple[str, ...], find: Any) -> str:
    return "".join(f"\n{mark} `{name}`\n\n{find(name).about}.\n{_arguments(find(name).args)}" for name in names)


def _arguments(model: type[Frozen]) -> str:
    rows = [
        f"- `{field.alias or name}` ({'required' if field.is_required() else f'default {_shown(field.default)}'}): "
        f"{field.description}"
        for name, field in model.model_fields.items()
    ]
    return "".join(f"\n{row}" for row in rows) + ("\n" if rows else "")


def _shown(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"
