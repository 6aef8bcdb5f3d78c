"""Messages of a chat and which of them are kept → which may be kept so that a chat template still takes it. Pure.

Only ever drops: what is left is part of what was kept. A cut chat is never less regular than the filed one: it ends
with the same role, opens with the same role, answers alternate where they did, and a tool's result stays with its call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

ASIDE = frozenset({"system", "developer"})
"""Roles that stand outside the turns."""


def repair(kept: Sequence[int], messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Indices of messages to keep, rising; empty where no valid chat is left of them."""
    roles = [str(message.get("role")) for message in messages]
    left = sorted(set(kept))
    while True:
        before = left
        left = _with_calls(left, messages)
        left = _ending(left, roles)
        left = _opening(left, roles)
        left = _alternating(left, roles)
        if left == before:
            return tuple(left) if _turns(left, roles) else ()


def _turns(kept: Sequence[int], roles: Sequence[str]) -> list[int]:
    return [index for index in kept if roles[index] not in ASIDE]


def _with_calls(kept: list[int], messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """A call and its results stay together or go together."""
    left = set(kept)
    index = 0
    while index < len(messages):
        stop = index + 1
        while stop < len(messages) and messages[stop].get("role") in {"tool", "function"}:
            stop += 1
        group = set(range(index, stop))
        if stop > index + 1 and not group <= left:
            left -= group
        index = stop
    return sorted(left)


def _ending(kept: list[int], roles: Sequence[str]) -> list[int]:
    """Cut after the last turn of the role that the filed chat ends with."""
    left = list(kept)
    while left and roles[left[-1]] != roles[-1]:
        left.pop()
    return left


def _opening(kept: list[int], roles: Sequence[str]) -> list[int]:
    """Drop turns before the first of the role that the filed chat opens with."""
    first = next((role for role in roles if role not in ASIDE), None)
    turns = _turns(kept, roles)
    early = set()
    for index in turns:
        if roles[index] == first:
            break
        early.add(index)
    return [index for index in kept if index not in early]


def _alternating(kept: list[int], roles: Sequence[str]) -> list[int]:
    """Of two turns in a row by one role the later stays, unless the filed chat has such pairs itself."""
    filed = _turns(range(len(roles)), roles)
    if any(_repeats(one, other, roles) for one, other in pairwise(filed)):
        return kept
    turns = _turns(kept, roles)
    doubled = {one for one, other in pairwise(turns) if _repeats(one, other, roles)}
    return [index for index in kept if index not in doubled]


def _repeats(one: int, other: int, roles: Sequence[str]) -> bool:
    return roles[one] == roles[other] and roles[one] not in {"tool", "function"}
