"""The axes that results are broken down by: rows in, labels and their order out. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf

from qgate.judge.arms import slice_of
from qgate.schemas.evidence import Row

OWN = ("evalset", "kind", "language", "difficulty", "temperature", "profile")
POSITIONS = (0, 16, 64, 128, 256, 512, 1024, 2048, 4096)
"""Where buckets of output positions begin, in tokens."""
PROMPT_LENGTHS = (0, 50, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
"""Where buckets of prompt lengths begin, in tokens; some kernels break only below 50."""


@dataclass(frozen=True)
class Axis:
    """A way to part rows: the label of a row (None: it has none), and the labels' order."""

    name: str
    label: Callable[[Row], str | None]
    order: Callable[[str], tuple[float, str]]


def axes_of(rows: Collection[Row]) -> list[Axis]:
    """The axes along which these rows can be parted: prompt length, what every row has, and the items' own slices."""
    keys = sorted({key for row in rows for key in row.slices} - set(OWN))
    own = [Axis(key, partial(slice_of, key=key), natural) for key in (*OWN, *keys)]
    lengths = [Axis("prompt length", _prompt_length, natural), Axis("answer length", _answer_length, natural)]
    return [*lengths, *_crossed(rows), *own]


def bucket(value: int, edges: Sequence[int]) -> str:
    """The label of the bucket that a number falls in: `64–127`, or `4096+` for the last."""
    for low, high in pairwise(edges):
        if low <= value < high:
            return f"{low}–{high - 1}"
    return f"{edges[-1]}+"


def natural(label: str) -> tuple[float, str]:
    """Labels that begin with a number in the order of it (1k after 512), others by name after them."""
    digits = label.rstrip("k+").partition("–")[0]
    try:
        number = float(digits)
    except ValueError:
        return (inf, label)
    return (number * 1024 if label.endswith("k") else number, label)


def _crossed(rows: Collection[Row]) -> list[Axis]:
    """Prompt length × temperature, where both vary: a fault of long prompts that only sampling shows is in no margin."""
    if min(len({_prompt_length(row) for row in rows}), len({row.temperature for row in rows})) < 2:
        return []
    return [Axis("prompt length × temperature", _length_and_temperature, _by_length_first)]


def _prompt_length(row: Row) -> str | None:
    return None if row.prompt_tokens is None else bucket(row.prompt_tokens, PROMPT_LENGTHS)


def _answer_length(row: Row) -> str | None:
    """Of the reference's answer: what it takes to answer, not what a variant made of it."""
    return None if row.completion_tokens is None else bucket(row.completion_tokens, POSITIONS)


def _length_and_temperature(row: Row) -> str | None:
    length = _prompt_length(row)
    return None if length is None else f"{length} × {row.temperature:g}"


def _by_length_first(label: str) -> tuple[float, str]:
    length, _, temperature = label.partition(" × ")
    return (natural(length)[0], f"{float(temperature):08.4f}")
