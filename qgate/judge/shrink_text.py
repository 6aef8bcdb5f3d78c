"""Text → the pieces that a prompt is cut into, at each level; the pieces always join to the text. Pure.

A piece keeps the white space after it. Scripts that write words without spaces (Chinese, Japanese, Thai, Khmer …) have
no words to find without a dictionary: there a word is one character as a reader sees it. A character is a grapheme
cluster, near enough (UAX #29 without the conjuncts of Indic scripts): no accent, vowel sign or emoji is torn apart.
"""

from __future__ import annotations

import re
import unicodedata

from qgate.schemas.minimised import Level
from qgate.scorers.text import UNSPACED

_PARAGRAPH = re.compile(r".+?(?:\n[ \t\r]*\n\s*|\Z)", re.DOTALL)
_SENTENCE = re.compile(
    r".+?(?:[。！？｡]+[\"'”’»」』）)\]*]*\s*|[.!?؟…।]+[\"'”’»」』）)\]*]*\s+|\n\s*|\Z)", re.DOTALL
)  # fmt: skip
_WORD = re.compile(r"\s*\S+\s*|\s+")
_JOINER = "\u200d"
_ATTACHED = re.compile("[\u0e33\u0eb3\u1160-\u11ff\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
"""What joins the character before it without being a mark: Thai and Lao AM, Hangul vowels, joiners, skin tones, tags."""


def split(text: str, level: Level) -> tuple[str, ...]:
    """The pieces of `text`, none of them empty (one empty piece for an empty text); `turns` leaves it whole."""
    if not text or level == "turns":
        return (text,)
    if level == "paragraphs":
        return tuple(_PARAGRAPH.findall(text))
    if level == "sentences":
        return tuple(_SENTENCE.findall(text))
    if level == "words":
        return tuple(piece for run in _WORD.findall(text) for piece in _unspaced(run))
    return graphemes(text)


def _unspaced(run: str) -> tuple[str, ...]:
    """A word as it is, or its characters where its script has no spaces; what is not of that script stays together."""
    if not UNSPACED.search(run):
        return (run,)
    pieces: list[str] = []
    in_word = False
    for cluster in graphemes(run):
        alone = UNSPACED.match(cluster) is not None or not cluster[0].isalnum()
        glued = cluster.isspace() or _is_closing(cluster)
        if pieces and (glued or (in_word and not alone)):
            pieces[-1] += cluster
        else:
            pieces.append(cluster)
        in_word = not alone
    return tuple(pieces)


def _is_closing(cluster: str) -> bool:
    return unicodedata.category(cluster[0]) in {"Pe", "Pf"}


def graphemes(text: str) -> tuple[str, ...]:
    """Grapheme clusters."""
    if text.isascii() and "\r" not in text:
        return tuple(text)
    pieces: list[str] = []
    for ch in text:
        if pieces and _joins(pieces[-1], ch):
            pieces[-1] += ch
        else:
            pieces.append(ch)
    return tuple(pieces)


def _joins(cluster: str, ch: str) -> bool:
    if ch == "\n":
        return cluster == "\r"
    if cluster in {"\n", "\r"}:
        return False
    if unicodedata.category(ch).startswith("M") or _ATTACHED.match(ch):
        return True
    return cluster.endswith(_JOINER) or (_is_flag(ch) and len(cluster) == 1 and _is_flag(cluster))


def _is_flag(ch: str) -> bool:
    return "\U0001f1e6" <= ch <= "\U0001f1ff"
