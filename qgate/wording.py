"""Words that every room says alike: a number of things. Numbers and names in, words out. Pure."""

from __future__ import annotations


def counted(num: int, one: str) -> str:
    """`1 item`, `2 items`: for a noun whose plural takes an s."""
    return f"{num} {one}" if num == 1 else f"{num} {one}s"
