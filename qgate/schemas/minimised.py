"""What the minimiser hands back: the shortest request that still fails, its rate, and every try on the way. Data only."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from qgate.schemas.base import Frozen, Stored

Body = dict[str, Any]
"""A request body as sent: of /v1/chat/completions (`messages`) or /v1/completions (`prompt`), JSON types only."""

Level = Literal["turns", "paragraphs", "sentences", "words", "characters"]
LEVELS: tuple[Level, ...] = ("turns", "paragraphs", "sentences", "words", "characters")

Step = Literal[
    "filed", "temperature", "turns", "paragraphs", "sentences", "words", "characters", "max_tokens", "picture"
]


class Rate(Frozen):
    """A share of tries that failed, with its exact (Clopper-Pearson) two-sided 95 % interval."""

    failures: int = Field(ge=0)
    tries: int = Field(ge=0)
    low: float = Field(ge=0, le=1, description="Lower end; 0 without a try")
    high: float = Field(ge=0, le=1, description="Upper end; 1 without a try")

    @property
    def value(self) -> float | None:
        """Failures per try; None without a try."""
        return self.failures / self.tries if self.tries else None


class Size(Frozen):
    """How large a request is. In scripts without spaces each character counts as a word; token ids count one each."""

    num_turns: int = Field(ge=0, description="Messages of a chat; prompts of a completion")
    num_words: int = Field(ge=0)
    num_characters: int = Field(ge=0, description="Characters as a reader sees them (grapheme clusters)")
    max_tokens: int | None = Field(description="Limit of the answer; null where the request names none")
    temperature: float | None = Field(description="Null where the request names none: the server's default")


class Trial(Frozen):
    """One candidate that was tried."""

    step: Step = Field(description="What was being cut when it was tried")
    size: Size
    failures: int = Field(ge=0)
    tries: int = Field(ge=0)
    accepted: bool | None = Field(
        description="Whether it was found to keep the failure; null: undecided when work ended"
    )
    on_path: bool = Field(description="Whether the final request was cut out of it")


class Cell(Frozen):
    """A cell of the picture: how often requests of this length failed at this temperature."""

    length: int = Field(ge=0, description="Index into `lengths`")
    temperature: int = Field(ge=0, description="Index into `temperatures`")
    rate: Rate


class RateMap(Frozen):
    """Failure rate over prompt length and temperature. Only requests that hold what the failure needs are counted, and
    those shorter than the shortest that failed."""

    lengths: tuple[tuple[int, int], ...] = Field(description="Bins of prompt length in characters, both ends in it")
    temperatures: tuple[float | None, ...] = Field(description="Rising; null: the server's default")
    cells: tuple[Cell, ...] = Field(description="Only cells with tries")


class Thresholds(Frozen):
    """Between which values the failure starts, as far as it was looked for. Null: not found."""

    longest_clear_words: int | None = Field(default=None, description="Longest cut of the final prompt that was clear")
    shortest_failing_words: int | None = Field(default=None, description="Words of the final prompt")
    highest_clear_temperature: float | None = None
    lowest_failing_temperature: float | None = None
    most_clear_max_tokens: int | None = None
    fewest_failing_max_tokens: int | None = None


class Waypoint(Frozen):
    """A request on the way from the filed one to the final one; each was seen to fail."""

    body: Body
    size: Size


class Minimised(Stored):
    """The outcome of minimising one failing request."""

    KIND: ClassVar[str] = "minimised"

    body: Body = Field(description="The smallest request found that keeps the failure; everything else as filed")
    before: Size
    after: Size
    rate: Rate = Field(description="Of the final request, by tries that had no part in choosing it")
    verified: bool = Field(description="Whether fresh tries of the final request failed at about the filed rate")
    deterministic: bool = Field(description="Whether one try per candidate was taken as enough")
    needs: Literal["content", "length"] = Field(
        description="`length`: other text of this length fails too, so the prompt is cut at its end only"
    )
    finest: Level | None = Field(
        description="Finest level at which removing any one piece of the final prompt was seen to lose the failure; "
        "null: the budget ended first, or `needs` is `length`"
    )
    exhausted: bool = Field(description="Whether the budget ended before the work did")
    num_calls: int = Field(ge=0, description="Model calls, all of them")
    num_candidates: int = Field(ge=0, description="Different requests tried")
    budget: int = Field(ge=0)
    thresholds: Thresholds
    trials: tuple[Trial, ...]
    rate_map: RateMap
    apart: bool | None = Field(
        default=None,
        description="Whether the unquantized model does not share the final request's failure; null: not asked",
    )
    path: tuple[Waypoint, ...] = Field(default=(), exclude=True, description="From the filed to the final; not stored")
