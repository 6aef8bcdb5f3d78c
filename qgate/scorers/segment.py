"""Text → words, characters, sentences, lines, paragraphs and list entries, in each language. Pure."""

from __future__ import annotations

import re

from qgate.scorers.text import UNSPACED

_WORD = re.compile(r"[^\W_]+(?:['’\-‑.][^\W_]+)*")
_UNSPACED_UNIT = re.compile(rf"{UNSPACED.pattern}|[^\W_]")
_UNITS = re.compile(rf"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern}).)+")
_ENDS = re.compile(r"[。！？!?؟…]+[\"'”’»」』）)\]*]*|(?<!\d)\.+[\"'”’»)\]*]*(?=\s|\Z)|(?<=\d)\.[\"'”’»)\]*]*(?=\s|\Z)")
_HEADING = re.compile(r"#{1,6}\s.*|<<.*>>")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|St|No|vs|etc|e\.g|i\.e|[ap]\.m|Sr|Sra|г|ул|т\.е|т\.д)|\b[A-ZА-Я])\.\Z"
)
_BULLET = re.compile(r"(?:[-*+–—][ \t\u3000]+|([•‣▪●○·・])(?!\1)[ \t\u3000]*)\S")
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_NUMBERED = re.compile(r"[ \t*_#>]*(\d{1,4})[*_]*[ \t]*[.)．）、:：]")


def words(text: str) -> list[str]:
    """Words: runs of letters and digits; in an unspaced script (Chinese, Japanese, Thai) each character is one.

    So a mixed text counts as word processors count it: 用Python写3行 has 5.
    """
    return [unit for run in _WORD.findall(text) for unit in _UNITS.findall(run)]


def characters(text: str) -> list[str]:
    """Letters, ideographs and digits one by one; no spaces, punctuation or combining marks."""
    return _UNSPACED_UNIT.findall("".join(ch for ch in text if ch.isalnum()))


def sentences(text: str) -> list[str]:
    """Sentences by their end marks (of any script) and by line breaks, without list marks.

    A Markdown heading or a line that is a <<title>> is none. Thai writes no end marks: there, a line is a sentence.
    """
    found: list[str] = []
    for line in lines(text):
        if _HEADING.fullmatch(line):
            continue
        start = 0
        body = re.sub(r"\A[ \t]*(?:[-*+•#>]+|\d{1,3}[.)、])[ \t]+", "", line)
        for end in _ENDS.finditer(body):
            if body[end.start()] == "." and _ABBREVIATION.search(body[start : end.start() + 1]):
                continue
            found.append(body[start : end.end()].strip())
            start = end.end()
        found.append(body[start:].strip())
    return [one for one in found if any(ch.isalnum() for ch in one)]


def lines(text: str) -> list[str]:
    """Lines with something on them, without the spaces around them and without marks of direction."""
    return [line.strip() for line in _DIRECTION.sub("", text).splitlines() if line.strip()]


def paragraphs(text: str) -> list[str]:
    """Blocks between blank lines."""
    return [block.strip() for block in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")) if block.strip()]


def bullets(text: str) -> list[str]:
    """Lines that open with a bullet (-, *, +, •, ・ …) and say something; • and ・ need no space after them. ・・・ is none."""
    return [line for line in lines(text) if _BULLET.match(line)]


def numbered(text: str) -> list[int]:
    """Numbers of the lines that open with `1.`, `1)`, `1、` or the like, in order."""
    return [int(match[1]) for line in lines(text) if (match := _NUMBERED.match(line))]
