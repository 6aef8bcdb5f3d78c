"""Servers that already run: a refusal where one would answer for two checkpoints, and what each says that it serves.

Asks the servers, and keeps what they said for a run or a plan that finds them silent:

    results/served/<key>.json    what the server of one address and name last said
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from qgate.errors import EngineError, RecipeError
from qgate.io.files import disk_errors, read_object, write_text
from qgate.io.recipe import LoadedRecipe
from qgate.ports import Attached, Engine
from qgate.schemas.base import content_key
from qgate.schemas.recipe import BASELINE


def check_servers(loaded: LoadedRecipe, engine: Engine) -> None:
    """Raises RecipeError: what one server says would be judged as another checkpoint, and always agree with the first.

    A variant that names the very checkpoint of the other is a control, and may be asked at the same server.
    """
    if not isinstance(engine, Attached):
        return
    for (one, options), (other, other_options) in _pairs(loaded):
        (address, name), (another, other_name) = engine.asked(options), engine.asked(other_options)
        if address == another and (name == other_name or None in {name, other_name}):
            raise _refusal(one, other, address)


def look_up(loaded: LoadedRecipe, engine: Engine, variant: str, results: Path) -> bool:
    """Ask what serves `variant`, and keep it; False where a server does not say.

    Raises RecipeError where two names at one address are one model, StoreError.
    """
    if not isinstance(engine, Attached):
        return True
    options = loaded.variant_engine_options.get(variant, loaded.engine_options)
    if (said := engine.served(options)) is None:
        return False
    file = _file(engine, options, results)
    with disk_errors(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
    if not said.items() <= read_object(file).items():  # it may tell less than before: a /version that failed once
        write_text(file, json.dumps(dict(said), indent=1) + "\n")
    for (one, first), (other, second) in _pairs(loaded):
        is_asked = variant in {one, other} and engine.asked(first)[0] == engine.asked(second)[0]
        if is_asked and said.get("root"):
            roots = [(engine.served(each) or {}).get("root") for each in (first, second)]
            if roots == [said["root"]] * 2:
                raise _refusal(one, other, f"{engine.asked(first)[0]}, where both names are {said['root']},")
    return True


def last_said(engine: Engine, options: BaseModel, results: Path) -> dict[str, Any] | None:
    """What that server said when it was last looked up; None where it never was."""
    return (read_object(_file(engine, options, results)) or None) if isinstance(engine, Attached) else None


def check_served(engine: Engine, options: BaseModel, before: Mapping[str, Any] | None) -> None:
    """Raises EngineError where a server says another thing than it said `before`: its answers would be kept as the other's."""
    if before is None or not isinstance(engine, Attached) or (now := engine.served(options)) is None:
        return
    for name in sorted(before.keys() & now.keys()):
        if before[name] != now[name]:
            raise EngineError(
                f"the server at {engine.asked(options)[0]} changed during the run: it tells another {name} than before",
                advice="run again while nobody restarts it",
            )


def _pairs(loaded: LoadedRecipe) -> Iterator[tuple[tuple[str, BaseModel], tuple[str, BaseModel]]]:
    """Every two that are not one checkpoint, with their engine's options."""
    recipe = loaded.recipe
    checkpoints = {BASELINE: recipe.model} | {name: each.checkpoint or each for name, each in recipe.variants.items()}
    options = {BASELINE: loaded.engine_options, **loaded.variant_engine_options}
    for one, other in combinations(options.items(), 2):
        if checkpoints[one[0]] != checkpoints[other[0]]:
            yield one, other


def _refusal(one: str, other: str, where: str) -> RecipeError:
    return RecipeError(
        f"variants.{other}: it would be asked at {where} as {one} is: one server would answer for both",
        advice=f"in its `engine_args` give {other} a server, or a name on that server, of its own",
    )


def _file(engine: Attached, options: BaseModel, results: Path) -> Path:
    return results / "served" / f"{content_key({'asked': engine.asked(options)})}.json"
