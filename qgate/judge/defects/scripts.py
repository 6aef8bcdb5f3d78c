"""Which writing system each stretch of a text is in: text in, runs of letters out. Pure.

The standard library has no Script property, so the blocks that hold letters are listed here (Unicode 16, Scripts.txt,
rounded outwards to whole blocks). Hiragana and Katakana are one system, `Kana`; digits, punctuation, symbols and emoji
belong to none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

# Order matters for speed only: the first that matches wins, and the blocks are disjoint.
BLOCKS: dict[str, str] = {
    "Latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1d00-\u1dbf\u1e00-\u1eff\u2c60-\u2c7f"
    "\ua722-\ua7ff\uab30-\uab69\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a",
    "Han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005\u3007\U00020000-\U0003ffff",
    "Kana": "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "Hangul": "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff",
    "Arabic": "\u0620-\u065f\u066e-\u06d3\u06d5\u06fa-\u06ff\u0750-\u077f\u08a0-\u08ff"
    "\ufb50-\ufd3d\ufd50-\ufdcf\ufdf0-\ufdfb\ufe70-\ufefc",
    "Hebrew": "\u0591-\u05c7\u05d0-\u05ea\u05ef-\u05f2\ufb1d-\ufb4f",
    "Devanagari": "\u0900-\u0963\u0971-\u097f\ua8e0-\ua8ff",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "Greek": "\u0370-\u037d\u0386\u0388-\u03ff\u1f00-\u1ffe",
    "Bengali": "\u0980-\u09e5\u09f0-\u09ff",
    "Gurmukhi": "\u0a01-\u0a65\u0a70-\u0a7f",
    "Gujarati": "\u0a81-\u0ae5\u0af9-\u0aff",
    "Oriya": "\u0b01-\u0b65\u0b71-\u0b7f",
    "Tamil": "\u0b82-\u0be5",
    "Telugu": "\u0c00-\u0c65",
    "Kannada": "\u0c80-\u0ce5",
    "Malayalam": "\u0d00-\u0d65\u0d7a-\u0d7f",
    "Sinhala": "\u0d81-\u0de5",
    "Lao": "\u0e81-\u0ecf\u0edc-\u0edf",
    "Tibetan": "\u0f00\u0f40-\u0fbc",
    "Myanmar": "\u1000-\u103f\u1050-\u109f",
    "Georgian": "\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f",
    "Armenian": "\u0531-\u0588",
    "Ethiopic": "\u1200-\u135f\u1380-\u139f",
    "Khmer": "\u1780-\u17d3\u17d7\u17dc",
    "Mongolian": "\u1820-\u18af",
    "Cherokee": "\u13a0-\u13fd",
    "Bopomofo": "\u3105-\u312f\u31a0-\u31bf",
    "Other": "\u0700-\u085f\u1400-\u16ff\u1700-\u177f\u1900-\u1aaf\u1b00-\u1c7f\u2c00-\u2c5f\u2d30-\u2dbf"
    "\ua000-\ua63f\ua6a0-\ua6ff\ua800-\ua8df\ua930-\ua95f\ua980-\uaaff\uab70-\uabff\U00010280-\U0001cfff"
    "\U0001e000-\U0001e8ff",
}
LATIN = frozenset({"Latin"})
DENSE = frozenset({"Han", "Kana", "Hangul"})

_RUN = re.compile("|".join(f"(?P<{name}>[{block}]+)" for name, block in BLOCKS.items()))


@dataclass(frozen=True, slots=True)
class Stretch:
    """text[start:stop] is in one script; the letters in it are `num_letters`."""

    start: int
    stop: int
    script: str
    num_letters: int
    num_words: int = 1

    @property
    def weight(self) -> float:
        """Letters, as letters of an alphabet: an ideograph or syllable says about as much as 2.5 of them."""
        return _weight(self.script, self.num_letters)


def is_plain(text: str) -> bool:
    """Whether every letter of `text` is Latin (or it has none). Fast."""
    return text.isascii() or not has_others(text, LATIN)


@lru_cache(maxsize=64)
def _outside(home: frozenset[str]) -> re.Pattern[str]:
    blocks = "".join(block for name, block in BLOCKS.items() if name not in home)
    return re.compile(f"[{blocks}]" if blocks else r"(?!)")


def has_others(text: str, home: frozenset[str]) -> bool:
    """Whether some letter of `text` is in a script that is not in `home`. Fast."""
    return _outside(home.intersection(BLOCKS)).search(text) is not None


def words(text: str) -> Iterator[Stretch]:
    """Maximal runs of letters of one script, in order."""
    for match in _RUN.finditer(text):
        start, stop = match.span()
        yield Stretch(start, stop, match.lastgroup or "", stop - start)


def stretches(text: str) -> list[Stretch]:
    """Runs of words of one script, in order: what stands between two of them is no letter."""
    joined: list[Stretch] = []
    for word in words(text):
        if joined and joined[-1].script == word.script:
            last = joined.pop()
            letters, num = last.num_letters + word.num_letters, last.num_words + 1
            joined.append(Stretch(last.start, word.stop, word.script, letters, num))
        else:
            joined.append(word)
    return joined


def weights(text: str) -> dict[str, float]:
    """Weight per script, in letters of an alphabet."""
    letters: Counter[str] = Counter()
    for match in _RUN.finditer(text):
        letters[match.lastgroup or ""] += match.end() - match.start()
    return {script: _weight(script, num) for script, num in letters.items()}


def _weight(script: str, num_letters: int) -> float:
    return num_letters * (2.5 if script in DENSE else 1.0)
