"""A check: a model of its arguments and a pure yes-or-no question about an answer. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from pydantic import Field, model_validator

from qgate.schemas.base import Frozen
from qgate.scorers.builtin import Args, Named


@dataclass(frozen=True)
class Check(Named[Args]):
    """One constraint that an answer keeps or does not."""

    holds: Callable[[str, Args, str], bool]
    """(answer, arguments, language of the item) → whether the answer keeps it."""

    def __call__(self, text: str, args: dict[str, Any], language: str) -> bool:
        """Whether the answer `text` keeps this constraint. Raises ValueError where `args` are wrong."""
        return self.holds(text, self.read(args), language)


class NoArgs(Frozen):
    """Arguments of a check that takes none."""


class Bounds(Frozen):
    """How many of something: at least `min`, at most `max`; both alike means exactly."""

    min: int | None = Field(default=None, ge=0, description="Least number that keeps the constraint")
    max: int | None = Field(default=None, ge=0, description="Greatest number that keeps it")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("needs `min`, `max` or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("`min` is greater than `max`")
        return self

    def fit(self, number: int) -> bool:
        """Whether `number` lies within."""
        return (self.min is None or number >= self.min) and (self.max is None or number <= self.max)
