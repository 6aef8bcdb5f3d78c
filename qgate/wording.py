"""Words that every room says alike: a number of things, what was meant by a name. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def counted(num: int, one: str) -> str:
    """`1 item`, `2 items`: for a noun whose plural takes an s."""
    return f"{num} {one}" if num == 1 else f"{num} {one}s"


def near_or_known(name: str, known: Iterable[str], label: str = "known") -> str:
    """`did you mean 'near'?`, or `known: …` with all of them where none is near."""
    known = tuple(known)
    return did_you_mean(name, known) or f"{label}: {', '.join(known)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean 'near'?`, nothing where none is near. Case and an option's dashes make no name near another."""
    by_letters = {each.strip("-").casefold(): each for each in known}
    near = get_close_matches(name.strip("-").casefold(), by_letters, n=1)
    return f"did you mean {by_letters[near[0]]!r}?" if near else ""
