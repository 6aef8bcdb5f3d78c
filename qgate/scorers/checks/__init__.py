"""Checks that an answer keeps or does not: text, arguments and language in, a truth value out. Pure.

Names before the colon and most after it are IFEval's (arXiv 2311.07911), where the check asks the same; the code is
qgate's own and so are the arguments (`min` and `max` in place of a relation), and these read more strictly:

- `length_constraints:*` count characters where words are not written apart (zh, ja, th), and bound from both sides;
- `number_paragraphs` splits at blank lines unless `divider: "***"` asks for IFEval's;
- `constrained_response` wants the option alone (IFEval: anywhere in the answer), `number_highlighted_sections` counts
  `**bold**` once (IFEval: twice), `multiple_sections` wants the numbers in order and text in each section;
- `keywords:*` match whole words (IFEval: `re.search` of the bare word), `repeat_prompt` keeps case;
- `response_language` goes by script and function words (IFEval: langdetect, which is random on short texts and passes
  where it fails); `change_case:uppercase` and `lowercase` are `english_capital` and `english_lowercase` without it.

Without a counterpart there: keywords:order, keywords:every_sentence, length_constraints:{number_characters,
number_lines, sentence_length, line_lengths}, startend:{start_checker, each_line, acrostic}, change_case:title,
punctuation:{forbidden, sentence_end}, detectable_format:{json_schema, yaml, code, table, plain, alphabetical,
number_numbered_lists, separated_items}.
"""

from __future__ import annotations

from typing import Any

from qgate.scorers.checks import content, counts, data, keywords, layout, surface
from qgate.scorers.checks.check import Check
from qgate.wording import near_or_known

_TABLE: dict[str, Check[Any]] = {
    check.name: check
    for module in (content, counts, data, keywords, layout, surface)
    for check in module.CHECKS
}  # fmt: skip

NAMES: tuple[str, ...] = tuple(sorted(_TABLE))
"""Names of the checks."""


def find(name: str) -> Check[Any]:
    """The check `name`. Raises ValueError with the near match."""
    if name not in _TABLE:
        raise ValueError(f"no check named {name!r}; {near_or_known(name, NAMES)}")
    return _TABLE[name]
