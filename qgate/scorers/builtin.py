"""A built-in scorer: a model of its arguments and a pure function. Touches nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from qgate.schemas.base import Frozen
from qgate.scorers.text import answer_part

Args = TypeVar("Args", bound=Frozen)


@dataclass(frozen=True)
class BuiltIn(Generic[Args]):
    """A scorer as `qgate.ports.Scorer` wants it, with its arguments checked by `args`."""

    name: str
    about: str
    """What the score is, for the reference."""
    args: type[Args]
    judge: Callable[[str, Args, str], float]

    def __call__(self, text: str, args: dict[str, Any], language: str) -> float:
        """Score in [0, 1] of the answer `text`. A malformed answer scores 0; ValueError where `args` are wrong."""
        return self.judge(answer_part(text), self.read(args), language)

    def read(self, args: dict[str, Any]) -> Args:
        """`args` as the model. Raises ValueError that names the scorer and the argument."""
        try:
            return self.args.model_validate(args)
        except ValidationError as error:
            raise ValueError(f"{self.name}: {explain(error)}") from error


def explain(error: ValidationError) -> str:
    """Each fault of a validation as `argument path: what is wrong`, on one line."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(dict.fromkeys(f"`{_path(fault['loc'])}`: {fault['msg']}" for fault in faults))


def _path(loc: tuple[int | str, ...]) -> str:
    """`values.0` of pydantic's location, which also names the members of a union."""
    return ".".join(str(part) for part in loc if "[" not in str(part)) or "arguments"
