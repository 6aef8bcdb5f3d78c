"""A text as the pieces that it says something with: text in, words with their places out. Pure.

Numbers and what else counts rows (a letter, a roman numeral, an ordinal) are all `COUNTER`, since a loop counts without
saying more. Scripts that write no spaces are cut into letters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

COUNTER = "0"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0900-\u0903\u093a-\u094f\u0962\u0963"
_HAN_NUMBER = "[一二三四五六七八九十百零]+"
_PIECE = re.compile(rf"[0-9]+|{_HAN_NUMBER}|[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\W_]|[{_MARKS}])+")
_COUNTER = re.compile(
    rf"[0-9]+|[a-z]|[ivxlc]+|{_HAN_NUMBER}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w{{3,5}}teen"
    r"|twenty|thirty|forty|fifty|first|second|third|fifth|ninth|(?:four|six|seven|eigh|ten|eleven|twelf|\w{3,5}teen)th"
    r"|(?:twen|thir|for|fif)tieth"
)


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces in order, as they are compared, and the offset of each in the text."""

    said: tuple[str, ...]
    places: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.said)

    @property
    def num_words(self) -> int:
        """Those that are no counters."""
        return sum(each != COUNTER for each in self.said)


def cut(text: str, offset: int = 0) -> Pieces:
    """The pieces of text[offset:]."""
    found = [(match.start(), match.group().lower()) for match in _PIECE.finditer(text, offset)]
    said = tuple(COUNTER if _COUNTER.fullmatch(piece) else piece for _, piece in found)
    return Pieces(said, tuple(place for place, _ in found))


def is_unspaced(said: tuple[str, ...]) -> bool:
    """Whether most of it is in scripts that write no spaces."""
    return 2 * sum(len(piece) == 1 and piece > "\u0e00" for piece in said) > len(said)
