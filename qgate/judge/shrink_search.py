"""Pieces that together fail, and a test of any subset → few pieces that still fail. Pure but for the test it is given.

Bisection finds the ends of what is needed (a trigger in one place costs about 2 log₂ n tests); what is not needed
between is cut in chunks from large to small, each cut then widened by bisection (a trigger in k places costs about
2 k log₂ n more); at last every single piece is tried. This is delta debugging (Zeller & Hildebrandt, IEEE TSE 28:183,
2002) with the ends looked for first. Nothing is kept that was not seen to fail.
"""

from __future__ import annotations

from collections.abc import Callable

FEW = 16
"""So many pieces are tried one by one at once."""

Kept = tuple[int, ...]
Fails = Callable[[Kept], bool]


def boundary(clear: int, failing: int, fails: Callable[[int], bool]) -> int:
    """By bisection: the failing number next to a clear one, if all between fail from some number on. Neither end is tried."""
    while abs(failing - clear) > 1:
        middle = (clear + failing) // 2
        if fails(middle):
            failing = middle
        else:
            clear = middle
    return failing


class Search:
    """Which of `num` pieces are kept. `fails` says whether a subset (indices, rising, not empty) keeps the failure."""

    def __init__(self, num: int, fails: Fails) -> None:
        self.kept: Kept = tuple(range(num))
        self._fails = fails
        self._clear: list[frozenset[int]] = []

    def takes(self, kept: Kept, *, guess: bool = True) -> bool:
        """Go on with `kept` if it fails. Where a guess will do, a part of what was seen clear is taken as clear."""
        if not kept:
            return False
        if guess and any(seen.issuperset(kept) for seen in self._clear):
            return False
        if self._fails(kept):
            self.kept = kept
            return True
        self._clear.append(frozenset(kept))
        return False

    def cut_end(self) -> None:
        """Keep the shortest beginning that fails, if failing goes on once it begins."""
        whole = self.kept
        boundary(0, len(whole), lambda end: self.takes(whole[:end]))

    def cut_start(self) -> None:
        """Keep the shortest end that fails, likewise."""
        whole = self.kept
        boundary(len(whole), 0, lambda start: self.takes(whole[start:]))

    def cut_chunks(self) -> None:
        """Cut chunks of a half, a quarter … of what is kept, down to two pieces."""
        size = len(self.kept) // 2
        while len(self.kept) > FEW and size > 1:
            start = size // 2 if size == len(self.kept) // 2 else 0
            while start < len(self.kept):
                if self.takes(self.kept[:start] + self.kept[start + size :]):
                    start = self._widen(start, size)
                else:
                    start += size
            size //= 2

    def _widen(self, at: int, size: int) -> int:
        """After a cut at `at`: cut all before it and after it that is not needed either. Returns where it is now."""
        whole = self.kept
        num = boundary(min(size, at) + 1, 0, lambda num: self.takes(whole[: at - num] + whole[at:]))
        before, after = whole[: at - num], whole[at:]
        boundary(len(after) + 1, 0, lambda num: self.takes(before + after[num:]))
        return len(before)

    def cut_singles(self) -> None:
        """Try every piece alone, and again until none can go: each was then seen to be needed.

        After a cut the next is twice as large, until one fails: a stretch that is not needed goes quickly.
        """
        changed = True
        while changed:
            changed = False
            at, size = len(self.kept), 1
            while at > 0:
                start = max(0, at - size)
                if self.takes(self.kept[:start] + self.kept[at:], guess=False):
                    changed, at, size = True, start, size * 2
                elif at - start > 1:
                    size = 1
                else:
                    at, size = at - 1, 1
