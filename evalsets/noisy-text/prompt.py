"""A prompt in its parts, so that noise can tell what may be lost from what the answer hangs on. Data only."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Prompt:
    """A question in one language. `keep` are strings that no noise may alter: without them there is no answer."""

    language: str
    join: str
    """What stands between sentences: a space, or nothing in Chinese and Japanese."""
    intro: str
    facts: tuple[str, ...]
    question: str
    instruction: str
    keep: tuple[str, ...]

    def text(self) -> str:
        """The clean prompt."""
        return self.joined(self.sentences())

    def sentences(self) -> list[str]:
        """Every part that is not empty, in reading order."""
        return [part for part in (self.intro, *self.facts, self.question, self.instruction) if part]

    def joined(self, parts: list[str]) -> str:
        """Sentences as one text."""
        return self.join.join(part for part in parts if part)

    def mapped(self, change: Callable[[str], str]) -> Prompt:
        """`change` applied to every stretch of text that is not kept."""
        return replace(
            self,
            intro=self.around_kept(self.intro, change),
            facts=tuple(self.around_kept(fact, change) for fact in self.facts),
            question=self.around_kept(self.question, change),
            instruction=self.around_kept(self.instruction, change),
        )

    def around_kept(self, text: str, change: Callable[[str], str]) -> str:
        """`text` with `change` applied between the kept strings."""
        if not text:
            return text
        if not self.keep:
            return change(text)
        pattern = "|".join(re.escape(word) for word in sorted(self.keep, key=len, reverse=True))
        pieces = re.split(f"({pattern})", text)
        return "".join(piece if index % 2 else change(piece) for index, piece in enumerate(pieces))
