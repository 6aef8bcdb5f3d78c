"""`constraints`: the share of an item's checks that an answer keeps. Pure."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from qgate.schemas.base import Frozen
from qgate.scorers import checks
from qgate.scorers.builtin import BuiltIn
from qgate.scorers.novelty import says_something


class CheckUse(Frozen):
    """One check by name, with its arguments."""

    name: str = Field(description="Name of the check (qgate.scorers.checks)")
    args: dict[str, Any] = Field(default_factory=dict, description="The check's own arguments")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        checks.find(self.name).read(self.args)
        return self


class ConstraintsArgs(Frozen):
    """Arguments of `constraints`."""

    checks: tuple[CheckUse, ...] = Field(min_length=1, description="What the answer must keep")
    strict: bool = Field(default=False, description="1 where every check is kept, else 0; default: the share kept")


def _constraints(text: str, args: ConstraintsArgs, language: str) -> float:
    if not says_something(text):
        return 0.0
    kept = [checks.find(use.name)(text, use.args, language) for use in args.checks]
    return float(all(kept)) if args.strict else sum(kept) / len(kept)


CONSTRAINTS = BuiltIn(
    "constraints",
    "Share of `checks` kept. An empty answer or a loop keeps none: it would satisfy every prohibition",
    ConstraintsArgs,
    _constraints,
)
