"""A text without what a loop may change from copy to copy: text in, folded text and the way back out. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fold:
    """Each match of `pattern` becomes `by`; letters become small where that keeps the length."""

    pattern: re.Pattern[str]
    by: str

    def folded(self, text: str) -> str:
        """The text folded."""
        small = text.lower()
        return self.pattern.sub(self.by, small if len(small) == len(text) else text)

    def unfolded(self, text: str, place: int) -> int:
        """Where in `text` the character is that stands at `place` of its folded form."""
        shift = 0
        for match in self.pattern.finditer(text):
            if match.start() - shift >= place + len(self.by):
                break
            shift += match.end() - match.start() - len(self.by)
        return min(place + shift, len(text) - 1)


NUMBERS = Fold(re.compile(r"[0-9]+"), "0")
SPACES = Fold(re.compile(r"\s+"), "")
MARKS = Fold(re.compile(r"[\W_]+"), "")
