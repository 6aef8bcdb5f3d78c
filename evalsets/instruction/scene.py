"""One writing task being built: which sentences, in which shape; rendered as the reference answer. Touches nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from dice import Dice

UNSPACED = ("zh", "ja", "th")
QUOTES = {"zh": "「」", "ja": "「」", "ru": "«»", "ar": "«»"}
POSTSCRIPT = {"zh": "附言：", "ja": "追伸", "es": "P. D.", "ar": "ملاحظة:", "th": "ป.ล."}
SECTION = {"zh": "部分"}
STOPS = (".", "。")


def holds(sentence: str, word: str, language: str) -> bool:
    """Whether `word` stands in `sentence`: as a whole word where words are written apart."""
    if language in UNSPACED:
        return word in sentence
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", sentence, re.IGNORECASE) is not None


def length(text: str, language: str) -> int:
    """Words, or letters and digits in a language written without spaces. Counted apart from qgate's scorers."""
    return sum(ch.isalnum() for ch in text) if language in UNSPACED else len(text.split())


@dataclass
class Scene:
    """A topic, and what the wishes have asked of the reference so far."""

    language: str
    texts: dict[str, Any]
    topic: dict[str, Any]
    dice: Dice
    needed: list[str] = field(default_factory=list)
    """Sentences that must be there; kept in this order where `ordered`."""
    banned: list[str] = field(default_factory=list)
    """Words that no further sentence may hold."""
    ordered: bool = False
    count: int | None = None
    """Number of sentences, opener and closer included."""
    opener: str = ""
    closer: str = ""
    layout: str = "prose"
    parts: int = 1
    """Paragraphs, sections or versions that the sentences are spread over."""
    title: str = ""
    postscript: str = ""
    placeholders: tuple[str, ...] = ()
    highlights: int = 0
    exclaim: bool = False
    quotes: bool = False
    case: str = ""

    @property
    def sentences(self) -> list[str]:
        """The topic's sentences."""
        return list(self.topic["sentences"])

    def with_word(self, word: str) -> list[str]:
        """The topic's sentences that hold `word`."""
        return [one for one in self.sentences if holds(one, word, self.language)]

    def need(self, sentence: str) -> None:
        """Put `sentence` into the reference."""
        if sentence not in self.needed:
            self.needed.append(sentence)

    def units(self) -> list[str]:
        """The sentences of the reference, in order."""
        num = (self.count or self.dice.between(3, 4)) - bool(self.opener) - bool(self.closer)
        spare = [
            one
            for one in self.sentences
            if one not in self.needed and not any(holds(one, word, self.language) for word in self.banned)
        ]
        chosen = [*self.needed, *self.dice.several(spare, max(0, min(num - len(self.needed), len(spare))))]
        if not self.ordered:
            chosen.sort(key=self.sentences.index)
        return [one for one in (self.opener, *chosen, self.closer) if one]

    def render(self) -> str:
        """The reference answer."""
        units = self.units()
        if self.exclaim:
            mark = "！" if self.language in ("zh", "ja") else "!"
            units = [one.rstrip("".join(STOPS)) + mark for one in units]
        units = [f"*{one}*" if at < self.highlights else one for at, one in enumerate(units)]
        text = getattr(self, f"_{self.layout}")(units)
        text = f"<<{self.title}>>\n{text}" if self.title else text
        text += "\n" + " / ".join(self.placeholders) if self.placeholders else ""
        text += f"\n{POSTSCRIPT.get(self.language, 'P.S.')} {self.postscript}" if self.postscript else ""
        text = {"upper": text.upper(), "lower": text.lower()}.get(self.case, text)
        opening, closing = QUOTES.get(self.language, '""')
        return f"{opening}{text}{closing}" if self.quotes else text

    def joined(self, units: list[str]) -> str:
        """Sentences one after the other."""
        return ("" if self.language in ("zh", "ja") and not self.highlights else " ").join(units)

    def spread(self, units: list[str]) -> list[str]:
        """The sentences over `parts` blocks as evenly as they go."""
        edges = [len(units) * at // self.parts for at in range(self.parts + 1)]
        return [self.joined(units[start:end]) for start, end in pairwise(edges)]

    def _prose(self, units: list[str]) -> str:
        return self.joined(units)

    def _bullets(self, units: list[str]) -> str:
        return "\n".join(f"- {one}" for one in units)

    def _numbered(self, units: list[str]) -> str:
        return "\n".join(f"{at}. {one}" for at, one in enumerate(units, start=1))

    def _lines(self, units: list[str]) -> str:
        return "\n".join(units)

    def _quoted(self, units: list[str]) -> str:
        return "\n".join(f"> {one}" for one in units)

    def _paragraphs(self, units: list[str]) -> str:
        return "\n\n".join(self.spread(units))

    def _sections(self, units: list[str]) -> str:
        head = SECTION.get(self.language, "SECTION")
        return "\n\n".join(f"{head} {at}\n{block}" for at, block in enumerate(self.spread(units), start=1))

    def _versions(self, units: list[str]) -> str:
        return "\n******\n".join(self.spread(units))
