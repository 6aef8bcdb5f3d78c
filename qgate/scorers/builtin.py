"""A built-in scorer: a model of its arguments and a pure function. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from qgate.schemas.base import Frozen, faults
from qgate.scorers.text import answer_part
from qgate.wording import near_or_known

Args = TypeVar("Args", bound=Frozen)
Location = tuple[int | str, ...]


@dataclass(frozen=True)
class Named(Generic[Args]):
    """Something that is asked by its name, with its arguments checked by `args`."""

    name: str
    about: str
    """What the score is, or what a check asks: for the reference."""
    args: type[Args]

    def read(self, args: dict[str, Any]) -> Args:
        """`args` as the model. Raises ValueError that names the scorer or check and the argument."""
        try:
            return self.args.model_validate(args)
        except ValidationError as error:
            raise ValueError(f"{self.name}: {explain(error, self.args)}") from error


@dataclass(frozen=True)
class BuiltIn(Named[Args]):
    """A scorer as `qgate.ports.Scorer` wants it."""

    judge: Callable[[str, Args, str], float]
    answer: Callable[[Args], str | None] = lambda args: None
    """The right answer that the arguments hold as a whole; None where they hold none."""

    def __call__(self, text: str, args: dict[str, Any], language: str) -> float:
        """Score in [0, 1] of the answer `text`. A malformed answer scores 0; ValueError where `args` are wrong."""
        return self.judge(answer_part(text), self.read(args), language)

    def reference(self, args: dict[str, Any]) -> str | None:
        """A right answer, as `qgate.ports.Referenced` has it. ValueError where `args` are wrong."""
        return self.answer(self.read(args))


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Each fault of a validation of `model` as `argument path: what is wrong`, on one line."""
    told = [
        f"`{_path(fault['loc'])}`: {_worded(fault['type'], fault['loc'], fault['msg'], model)}"
        for fault in faults(error)
    ]
    return "; ".join(dict.fromkeys(told))


def _worded(kind: str, loc: Location, message: str, model: type[BaseModel]) -> str:
    if kind == "missing":
        return "is missing"
    if kind != "extra_forbidden":
        return message.removeprefix("Value error, ")
    known = [field.alias or name for name, field in model.model_fields.items()] if len(loc) == 1 else []
    return f"no such argument; {near_or_known(str(loc[-1]), known)}" if known else "no such argument"


def _path(loc: Location) -> str:
    """`values.0` of pydantic's location, which also names the members of a union."""
    return ".".join(str(part) for part in loc if "[" not in str(part)) or "arguments"
