"""What a constraint is, and the parts that most are put together from. Touches nothing.

A wish is drawn once (its parameters), may then shape any number of scenes, and is worded and checked by its parameters
alone. A late wish is drawn from the finished reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scene import Scene

Params = dict[str, Any]


@dataclass(frozen=True)
class Wish:
    """One constraint."""

    difficulty: int
    draw: Callable[[Scene], Params]
    shape: Callable[[Scene, Params], None]
    checks: Callable[[Params, str], list[tuple[str, Params]]]
    late: Callable[[Scene, str], Params] | None = None
    """Parameters from the rendered reference, in place of `draw`."""


def nothing(scene: Scene) -> Params:
    return {}


def setting(**fields: Any) -> Callable[[Scene, Params], None]:
    """Sets fields of the scene; a value that is a parameter's name in braces takes that parameter."""

    def shape(scene: Scene, params: Params) -> None:
        for name, value in fields.items():
            setattr(scene, name, params[value[1:-1]] if isinstance(value, str) and value[:1] == "{" else value)

    return shape


def blocks(layout: str) -> Callable[[Scene, Params], None]:
    """Spreads one sentence more than there are blocks over `n` blocks."""

    def shape(scene: Scene, params: Params) -> None:
        scene.layout, scene.parts, scene.count = layout, params["n"], params["n"] + 1

    return shape


def number(low: int, high: int) -> Callable[[Scene], Params]:
    """The number that an earlier wish needs, or a small one: 3 or 4 outside English and Chinese, as their grammar likes."""

    def draw(scene: Scene) -> Params:
        drawn = scene.dice.between(*((low, high) if scene.language in ("en", "zh") else (3, 4)))
        return {"n": scene.count or drawn}

    return draw


def exactly(name: str, key: str = "n", **more: Any) -> Callable[[Params, str], list[tuple[str, Params]]]:
    return lambda params, language: [(name, {"min": params[key], "max": params[key], **more})]


def at_least(name: str) -> Callable[[Params, str], list[tuple[str, Params]]]:
    return lambda params, language: [(name, {"min": params["n"]})]


def fixed(name: str, **args: Any) -> Callable[[Params, str], list[tuple[str, Params]]]:
    return lambda params, language: [(name, args)]


def keep(scene: Scene, params: Params) -> None:
    """Leaves the scene as it is."""
