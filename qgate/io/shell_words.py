"""A pasted shell command in, the words of its first `curl` out. Pure.

Quoting as POSIX sh has it (2.2), with bash's $'…'; lines go on behind a backslash; a here-document is handed out too.
Variables are left as they stand: they are the user's, and most often a key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ENDS = "|&;<>\n"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_CODES = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})")
_HERE = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1[^\n]*\n(.*?)\n[ \t]*\2[ \t]*(?:\n|$)", re.DOTALL)


@dataclass(frozen=True)
class Command:
    """A command's words, and what a here-document feeds it."""

    words: tuple[str, ...]
    standard_input: str | None = None


def find_command(text: str, *names: str) -> Command | None:
    """The first command of these names in `text`; None where there is none. Raises ValueError for a quote that does not end."""
    here = _HERE.search(text)
    if here is not None:
        text = text[: here.start()] + "\n" + text[here.end() :]
    for words in commands(text):
        for index, word in enumerate(words):
            if re.split(r"[/\\]", word)[-1] in names:
                return Command(tuple(words[index:]), here[3] if here else None)
    return None


def commands(text: str) -> list[list[str]]:
    """Every simple command as its words. Raises ValueError for a quote that does not end."""
    reader = _Reader(text)
    found: list[list[str]] = [[]]
    while (word := reader.word()) is not None:
        if word == "":
            found.append([])
        else:
            found[-1].append(word.removeprefix("\0"))
    return [words for words in found if words]


class _Reader:
    """Reads word by word; an empty word stands for the end of a command, and \\0 opens a word that is truly empty."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0

    def word(self) -> str | None:
        self._skip_blanks()
        if self.at >= len(self.text):
            return None
        if self.text[self.at] in ENDS:
            self.at += 1
            return ""
        parts: list[str] = []
        while self.at < len(self.text) and self.text[self.at] not in " \t" + ENDS:
            parts.append(self._part())
        return "".join(parts) or "\0"

    def _skip_blanks(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            else:
                return

    def _part(self) -> str:
        char = self.text[self.at]
        if char == "'":
            return self._until("'", self.at + 1)
        if char == '"':
            return self._double()
        if self.text.startswith("$'", self.at):
            return self._ansi()
        if char == "\\":
            self.at += 2
            escaped = self.text[self.at - 1 : self.at]
            return "" if escaped == "\n" else escaped
        self.at += 1
        return char

    def _until(self, quote: str, start: int) -> str:
        end = self.text.find(quote, start)
        if end < 0:
            raise ValueError(f"a quote {quote} in the command does not end")
        self.at = end + 1
        return self.text[start:end]

    def _double(self) -> str:
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return "".join(parts)
            following = self.text[self.at + 1 : self.at + 2]
            if char == "\\" and following and following in '$`"\\\n':
                parts.append("" if following == "\n" else following)
                self.at += 2
            else:
                parts.append(char)
                self.at += 1
        raise ValueError('a quote " in the command does not end')

    def _ansi(self) -> str:
        self.at += 2
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == "'":
                return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if char != "\\":
                parts.append(char)
            elif code := _CODES.match(self.text, self.at):
                self.at = code.end()
                digits = code[1] or code[2] or code[3]
                parts.append(chr(int(digits, 16) if digits else int(code[4], 8)))
            else:
                escaped = self.text[self.at : self.at + 1]
                self.at += 1
                parts.append(_ESCAPES.get(escaped, escaped))
        raise ValueError("a quote $' in the command does not end")
