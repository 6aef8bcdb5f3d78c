"""The cut of a set that a recipe uses: items in, fewer items out. Pure.

`where` keeps the items whose slice has one of the values given; `kind`, `language` and `difficulty` count as slices.

`limit` keeps the first `limit` items of an order that spreads evenly over kinds and languages: a family (a clean item
and its noised twins) is placed whole, and the next family is always the one whose kind × language cell was used least
so far, then whose kind, then whose language, then whose difficulty; what is still equal is decided by the SHA-256 of
the family's id. So the cut depends on the ids alone and not on the order in the file, a twin never comes without its
clean item, and a smaller limit always gives a part of what a larger one gives: raising it keeps every stored answer.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from qgate.errors import EvalsetError
from qgate.schemas.evalset import Item
from qgate.schemas.recipe import EvalsetUse
from qgate.wording import near_or_known

_Family = tuple[Item, ...]
_Keys = tuple[tuple[str, ...], ...]


def cut(items: tuple[Item, ...], use: EvalsetUse) -> tuple[Item, ...]:
    """The items that `use` asks for, in the set's order. Raises EvalsetError where none is left."""
    kept = _where(items, use)
    if use.limit is None or use.limit >= len(kept):
        return kept
    chosen = {item.id for item in islice(spread(kept), use.limit)}
    return tuple(item for item in kept if item.id in chosen)


def slices_of(item: Item) -> dict[str, str]:
    """Every key that results of this item can be broken down by."""
    return {**item.slices, "kind": item.kind, "language": item.language, "difficulty": str(item.difficulty)}


def spread(items: tuple[Item, ...]) -> Iterator[Item]:
    """All of `items` in the order that every limit is a prefix of (see the module's docstring)."""
    waiting: dict[_Keys, list[_Family]] = {}
    for family in sorted(_families(items), key=_chance, reverse=True):
        waiting.setdefault(_keys(family), []).append(family)
    used: Counter[tuple[str, ...]] = Counter()
    while waiting:
        keys = min(waiting, key=lambda keys: ([used[key] for key in keys], _chance(waiting[keys][-1])))
        yield from waiting[keys].pop()
        used.update(keys)
        if not waiting[keys]:
            del waiting[keys]


def _chance(family: _Family) -> bytes:
    return hashlib.sha256(family[0].id.encode()).digest()


def _families(items: tuple[Item, ...]) -> list[_Family]:
    """Clean items with their twins behind them, by id; a twin whose clean item is not among `items` stands alone."""
    families: dict[str, list[Item]] = {item.id: [item] for item in items if item.twin_of is None}
    for twin in sorted((item for item in items if item.twin_of is not None), key=lambda item: item.id):
        families.setdefault(twin.twin_of if twin.twin_of in families else twin.id, []).append(twin)
    return [tuple(family) for family in families.values()]


def _keys(family: _Family) -> _Keys:
    kind, language, difficulty = family[-1].kind, family[0].language, str(family[0].difficulty)
    return (("cell", kind, language), ("kind", kind), ("language", language), ("difficulty", difficulty))


def _where(items: tuple[Item, ...], use: EvalsetUse) -> tuple[Item, ...]:
    """The items that every condition of `use.where` keeps."""
    for key, values in use.where.items():
        known = {found for item in items if (found := slices_of(item).get(key)) is not None}
        if not known:
            keys = sorted({name for item in items for name in slices_of(item)})
            raise EvalsetError(
                f"evaluation set {use.name}: no item has a slice {key!r}",
                advice=near_or_known(key, keys, "known slices"),
            )
        for value in values:
            if value not in known:
                raise EvalsetError(
                    f"evaluation set {use.name}: no item has {key} {value!r}",
                    advice=near_or_known(value, sorted(known), f"known {key}"),
                )
    kept = tuple(item for item in items if all(slices_of(item).get(k) in v for k, v in use.where.items()))
    if not kept:
        raise EvalsetError(
            f"evaluation set {use.name}: `where` leaves no item",
            advice="each condition alone has items, but none has them all: drop one",
        )
    return kept
