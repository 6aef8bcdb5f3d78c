"""Noise on characters: a prompt, a severity from 1 to 3 and dice in, a noised text out. Pure.

Each function alters a share of the characters that may be altered; the strings that the answer hangs on stay whole.
"""

from __future__ import annotations

from collections.abc import Callable

import tables
from dice import Dice
from prompt import Prompt

SHARE = {1: 0.06, 2: 0.15, 3: 0.30}
"""Share of the letters that are altered, by severity."""

WIDE_SPACE = "\u3000"


def typo(prompt: Prompt, severity: int, dice: Dice) -> str:
    """A neighbouring key, or in Chinese and Japanese a homophone."""
    if (homophones := tables.HOMOPHONES.get(prompt.language)) is not None:
        return _each(prompt, SHARE[severity] * 2, dice, lambda char: dice.pick(homophones.get(char, char)))
    near = _neighbours(tables.KEYBOARDS[prompt.language])
    return _each(prompt, SHARE[severity], dice, lambda char: _like(char, dice.pick(near.get(char.lower(), char))))


def ocr(prompt: Prompt, severity: int, dice: Dice) -> str:
    """What a scanner takes a letter for."""
    table = tables.SCANNER[prompt.language]
    widest = max(len(key) for key in table)

    def change(text: str) -> str:
        out, at = [], 0
        while at < len(text):
            key = next((text[at : at + n] for n in range(widest, 0, -1) if text[at : at + n] in table), text[at])
            out.append(table[key] if key in table and dice.chance(SHARE[severity] * 1.5) else key)
            at += len(key)
        return "".join(out)

    return prompt.mapped(change).text()


def letters(prompt: Prompt, severity: int, dice: Dice) -> str:
    """Dropped and doubled letters."""
    return _each(prompt, SHARE[severity], dice, lambda char: char * 2 if dice.chance(0.5) else "")


def spacing(prompt: Prompt, severity: int, dice: Dice) -> str:
    """Missing spaces; in scripts without spaces, stray ones."""
    if prompt.language in {"zh", "ja", "th"}:
        return _each(prompt, SHARE[severity] * 1.5, dice, lambda char: f"{char} ")
    share = {1: 0.25, 2: 0.6, 3: 1.0}[severity]
    return "".join("" if char == " " and dice.chance(share) else char for char in prompt.text())


def case(prompt: Prompt, severity: int, dice: Dice) -> str:
    """Letters in the wrong case, kept strings too: case never changes an answer here."""
    share = {1: 0.1, 2: 0.3, 3: 0.5}[severity]
    return "".join(char.swapcase() if dice.chance(share) else char for char in prompt.text())


def homoglyph(prompt: Prompt, severity: int, dice: Dice) -> str:
    """Letters of another alphabet that look the same."""
    table = tables.HOMOGLYPHS[prompt.language]
    share = {1: 0.15, 2: 0.45, 3: 1.0}[severity]
    return prompt.mapped(
        lambda text: "".join(table.get(char, char) if dice.chance(share) else char for char in text)
    ).text()


def fullwidth(prompt: Prompt, severity: int, dice: Dice) -> str:
    """ASCII in its full-width form, kept strings too: it reads the same."""
    share = {1: 0.15, 2: 0.5, 3: 1.0}[severity]
    return "".join(_wide(char) if dice.chance(share) else char for char in prompt.text())


def control(prompt: Prompt, severity: int, dice: Dice) -> str:
    """Zero-width and control characters between letters."""
    marks = tables.INVISIBLE[severity]
    return _each(prompt, SHARE[severity], dice, lambda char: char + dice.pick(marks))


def _each(prompt: Prompt, share: float, dice: Dice, change: Callable[[str], str]) -> str:
    """The text with `change` applied to a share of its letters outside kept strings."""

    def over(text: str) -> str:
        return "".join(change(char) if char.isalpha() and dice.chance(share) else char for char in text)

    return prompt.mapped(over).text()


def _like(model: str, char: str) -> str:
    return char.upper() if model.isupper() else char


def _wide(char: str) -> str:
    if char == " ":
        return WIDE_SPACE
    return chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char


def _neighbours(rows: tuple[str, ...]) -> dict[str, str]:
    """Key to the keys beside, above and below it."""
    at = {(x, y): char for y, row in enumerate(rows) for x, char in enumerate(row)}
    around = ((-1, 0), (1, 0), (0, -1), (0, 1))
    return {char: "".join(at.get((x + dx, y + dy), "") for dx, dy in around) for (x, y), char in at.items()}
