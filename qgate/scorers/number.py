"""`number`: the number that an answer states. Pure."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from pydantic import Field

from qgate.schemas.base import Frozen
from qgate.scorers.builtin import BuiltIn
from qgate.scorers.numerals import numbers


class NumberArgs(Frozen):
    """Arguments of `number`."""

    value: Decimal = Field(description="The right number", allow_inf_nan=False)
    tolerance: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="Greatest absolute difference")
    pick: Literal["last", "first", "only"] = Field(
        default="last", description="Which one counts where several are stated; `only`: several are wrong"
    )


def _number(text: str, args: NumberArgs, language: str) -> float:
    stated = numbers(text, language)
    if not stated or (args.pick == "only" and len(set(stated)) > 1):
        return 0.0
    readings = stated[0] if args.pick == "first" else stated[-1]
    slack = Decimal(str(args.tolerance))
    return float(any(abs(one - args.value) <= slack for one in readings))


NUMBER = BuiltIn(
    "number",
    "1 where the stated number is `value`, in figures of any script, Chinese or Thai numerals or number words",
    NumberArgs,
    _number,
    lambda args: format(args.value, "f"),
)
