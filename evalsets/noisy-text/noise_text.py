"""Noise on sentences: a prompt, a severity from 1 to 3 and dice in, a noised text out. Pure.

Left-overs of markup and logs, broken encodings, other languages, speech, a cut end. What the answer hangs on stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import tables
from dice import Dice
from prompt import Prompt


def mojibake(prompt: Prompt, severity: int, dice: Dice) -> str:
    """UTF-8 read as Windows-1252: a greeting at first, then quotes and spaces, then the instruction as well."""
    greeting = "Ñandú – café “Ómbrel” …" if prompt.language in {"en", "es"} else prompt.intro
    broken = _misread(greeting)
    parts = [f"{broken} ", *prompt.facts, prompt.question, prompt.instruction]
    if severity >= 2:
        parts = [broken, *(_misread(f"“{fact}”", keep=fact) for fact in prompt.facts), *parts[-2:]]
        parts = [part.replace(" ", _misread("\u00a0") + " ", 2) for part in parts]
    if severity == 3:
        tail = prompt.instruction if prompt.join == "" or prompt.language in {"ar", "ru", "th"} else greeting
        parts = [_misread(broken), *parts[1:-1], f"{_misread(tail)} {_misread('…’”')}", _misread(broken)]
    return " ".join(part for part in parts if part)


def _misread(text: str, keep: str = "") -> str:
    """`text` as Windows-1252 shows its UTF-8 bytes (undefined ones as C1 controls, like browsers do)."""
    shown = "".join(_one_byte(byte) for byte in text.encode())
    return shown.replace("".join(_one_byte(byte) for byte in keep.encode()), keep) if keep else shown


def _one_byte(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


def markup(prompt: Prompt, severity: int, dice: Dice) -> str:
    """HTML and Markdown that a copy left behind."""
    share = {1: 0.5, 2: 1.0, 3: 1.0}[severity]
    parts = []
    for sentence in prompt.sentences():
        before, after = dice.pick(tables.TAGS[severity])
        text = sentence.replace(" ", "&nbsp;" if dice.chance(0.5) else " ", severity - 1)
        parts.append(f"{before}{text}{after}" if dice.chance(share) else text)
    if parts == prompt.sentences():
        parts[0] = f"<p>{parts[0]}</p>"
    return "\n".join(parts) if severity == 3 else prompt.joined(parts)


def log(prompt: Prompt, severity: int, dice: Dice) -> str:
    """Log lines around the sentences; at the worst a stack trace in the middle."""
    lines: list[str] = []
    share = {1: 0.2, 2: 0.6, 3: 1.0}[severity]
    for sentence in prompt.sentences():
        if dice.chance(share) or not lines:
            lines += [_line(dice.pick(tables.LOG_LINES), dice) for _ in range(severity)]
        lines.append(sentence)
    if severity == 3:
        middle = len(lines) // 2
        lines[middle:middle] = [_line(line, dice) for line in tables.STACK_TRACE]
    return "\n".join(lines)


def _line(template: str, dice: Dice) -> str:
    return template.format(n=dice.between(10, 59), m=dice.between(100, 999), k=dice.between(2, 9))


def emoji(prompt: Prompt, severity: int, dice: Dice) -> str:
    """Emoji between words and after sentences."""
    if severity == 1:
        return prompt.joined([f"{sentence}{dice.pick(tables.EMOJI)}" for sentence in prompt.sentences()])
    share = {2: 0.3, 3: 0.7}[severity]
    return prompt.joined(
        [
            "".join(_with_emoji(word, share, severity, dice) for word in _words(sentence, prompt))
            + dice.pick(tables.EMOJI)
            for sentence in prompt.sentences()
        ]
    )


def _with_emoji(word: str, share: float, severity: int, dice: Dice) -> str:
    if not dice.chance(share):
        return word
    return word + "".join(dice.several(tables.EMOJI, dice.between(1, severity)))


def _words(sentence: str, prompt: Prompt) -> list[str]:
    """Pieces that emoji may stand between: words with their space, or pairs of characters where none are written."""
    if prompt.join:
        return re.findall(r"\S+\s*", sentence)
    whole = "|".join([*(re.escape(word) for word in sorted(prompt.keep, key=len, reverse=True)), r"\d[\d:,. ]*"])
    pieces = re.split(f"({whole})", sentence)
    return [word for at, piece in enumerate(pieces) for word in ([piece] if at % 2 else re.findall("..?", piece))]


def speech(prompt: Prompt, severity: int, dice: Dice, fillers: Sequence[str], corrections: Sequence[str]) -> str:
    """Speech to text: no punctuation, no capitals; then fillers; then repeated words and false starts."""
    gap = "" if prompt.join == "" else " "
    parts: list[str] = []
    for sentence in prompt.sentences():
        parts += [dice.pick(fillers)] * (severity >= 2) + [_spoken(sentence, prompt)]
        if severity == 3:
            words = _words(parts[-1], prompt)
            at = dice.between(0, min(3, len(words) - 1))
            parts[-1] = "".join([*words[: at + 1], gap if not words[at].endswith(" ") else "", *words[at:]])
            parts += [dice.pick(corrections)] * dice.chance(0.5)
    return gap.join(parts)


def _spoken(sentence: str, prompt: Prompt) -> str:
    plain = prompt.around_kept(sentence, lambda text: re.sub(r"[^\w\s\u0300-\u036f\u0e31-\u0e4e]", "", text))
    return plain if prompt.language == "th" else prompt.around_kept(plain, str.lower)


def truncation(prompt: Prompt, severity: int, dice: Dice) -> str:
    """The end is missing, in mid-word: of the last word, of the instruction, of the question."""
    head = [prompt.intro, *prompt.facts]
    if severity == 1:
        return prompt.joined(
            [*head, prompt.question, prompt.instruction[: -(dice.between(2, 4) if prompt.join else 2)]]
        )
    if severity == 2:
        return prompt.joined([*head, prompt.question, prompt.instruction[: len(prompt.instruction) // 3]])
    return prompt.joined([*head, prompt.question[: -dice.between(2, 3)]])


def code_switch(prompt: Prompt, severity: int, other: Prompt) -> str:
    """Sentences in another language, taken from `other`: the instruction, then the question, then every second fact.

    Where the other language tells the facts in more or fewer sentences, they stay as they are.
    """
    facts = list(prompt.facts)
    if severity == 3 and len(facts) == len(other.facts):
        facts[1::2] = other.facts[1::2]
    question = prompt.question if severity == 1 else other.question
    intro = other.intro if severity == 3 else prompt.intro
    return " ".join(part for part in (intro, *facts, question, other.instruction) if part)
