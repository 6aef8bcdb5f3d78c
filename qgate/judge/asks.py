"""An incident's request in, the ways to ask it again with one thing changed out. Pure.

These factors need no other server: they are fields of the request, its seed, or how many are in flight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from qgate.judge import factors
from qgate.judge.request_body import NEUTRAL, left_out, sampling_of
from qgate.schemas.base import content_key
from qgate.schemas.minimised import Body

LADDER = (1.0, 0.7, 0.3)
TRY = "{try}"
"""In a text of a body: becomes the try's own, so that no two tries share it."""


@dataclass(frozen=True)
class Ask:
    """A request that is sent again and again. `body` holds every sampling value that is known."""

    body: Body
    in_flight: int = 1
    one_seed: bool = False
    """Whether every try has the filed seed."""
    seeds: tuple[int, ...] = ()
    """The only seeds that are sent, in turn; none: the filed one, then others."""
    logprobs: bool = False
    again: bool = False
    """Whether answers of the same request that were given before do not count."""

    @property
    def key(self) -> str:
        """Content key: what decides the answers beside what serves it and a try's number."""
        said = {"body": self.body, "in_flight": self.in_flight, "one_seed": self.one_seed, "logprobs": self.logprobs}
        said |= {"seeds": self.seeds} if self.seeds else {}
        return content_key(said | ({"again": True} if self.again else {}))

    @property
    def temperature(self) -> float:
        """As it is sent; where the body leaves it out, what a server takes."""
        return sampling_of(self.body, 0).temperature

    def seed(self, number: int) -> int:
        """Seed of the try of this number: the filed one first, then 1, 2, 3, …; or one of `seeds`."""
        if self.seeds:
            return self.seeds[number % len(self.seeds)]
        filed = self.body.get("seed")
        filed = filed if isinstance(filed, int) else 0
        return filed if self.one_seed or number == 0 else number if number != filed else 0

    def body_of(self, unique: str) -> Body:
        """The body of one try."""
        return {
            name: value.replace(TRY, unique) if isinstance(value, str) and TRY in value else value
            for name, value in self.body.items()
        }


@dataclass(frozen=True)
class Factor:
    """One thing that is changed: what, and what it tells apart."""

    name: str
    change: str
    separates: str
    ask: Ask


def as_filed(ask: Ask) -> Factor:
    """Nothing is changed."""
    return Factor(factors.AS_FILED, "as filed", "whether it happens at all", ask)


def once_more(ask: Ask) -> Factor:
    """As filed at the end: what took the failure away shows nothing where it does not come back."""
    change = "as filed, once more at the end"
    return Factor(factors.AGAIN, change, "a server that changed meanwhile", replace(ask, again=True))


def failed_again(ask: Ask, seeds: tuple[int, ...]) -> Factor:
    """As filed, only with seeds that failed: whether it is a matter of the seed, or comes and goes."""
    change = "as filed, the seeds that failed once more"
    return Factor(
        factors.FAILED_AGAIN, change, "a matter of the seed from noise", replace(ask, seeds=seeds, again=True)
    )


def cheap_factors(ask: Ask, own_defaults: Mapping[str, Any]) -> Iterator[Factor]:
    """Every factor that is a matter of the request, one changed at a time. `own_defaults`: of generation_config.json."""
    if ask.temperature > 0:
        yield Factor(
            factors.GREEDY, "at temperature 0", "sampling from all else", with_fields(ask, {"temperature": 0.0})
        )
        again = "with the filed seed again and again"
        yield Factor("one_seed", again, "chance of the sampler from noise", replace(ask, one_seed=True))
    if ask.in_flight > 1:
        alone = replace(ask, in_flight=1)
        yield Factor(factors.ONE_AT_A_TIME, "asked one at a time", "load from all else", alone)
    yield from _neutral(ask, own_defaults)
    nan = replace(ask, logprobs=True)
    yield Factor(factors.NAN, "with log-probabilities, to see NaN", "overflow in the arithmetic from sampling", nan)


def ladder(ask: Ask) -> Iterator[Factor]:
    """The temperatures between the filed one and 0."""
    for temperature in LADDER:
        if temperature < ask.temperature:
            name, other = f"temperature_{temperature:g}", with_fields(ask, {"temperature": temperature})
            yield Factor(name, f"at temperature {temperature:g}", "from which on", other)


def with_fields(ask: Ask, fields: Mapping[str, Any]) -> Ask:
    """The same with other fields of the request."""
    return replace(ask, body={**ask.body, **fields})


def _neutral(ask: Ask, own_defaults: Mapping[str, Any]) -> Iterator[Factor]:
    """Without the sampling values that only the checkpoint's generation_config.json gives."""
    given = {name: NEUTRAL[name] for name in own_defaults if name in NEUTRAL and own_defaults[name] != NEUTRAL[name]}
    if given:
        names = ", ".join(sorted(given))
        change = f"without generation_config.json's {names}"
        yield Factor(factors.NEUTRAL, change, "the checkpoint's sampling defaults", with_fields(ask, given))


def defaults_taken(body: Body, own_defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults that a request really takes: those that it does not name itself."""
    missing = left_out(body)
    return {name: value for name, value in own_defaults.items() if name in missing}
