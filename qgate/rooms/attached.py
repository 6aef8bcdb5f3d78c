"""A recipe in, a refusal out where a server that already runs would answer for two checkpoints. Touches nothing."""

from __future__ import annotations

from itertools import combinations

from qgate.errors import RecipeError
from qgate.io.recipe import LoadedRecipe
from qgate.ports import Attached, Engine
from qgate.schemas.recipe import BASELINE


def check_servers(loaded: LoadedRecipe, engine: Engine) -> None:
    """Raises RecipeError: what one server says would be judged as another checkpoint, and always agree with the first.

    A variant that names the very checkpoint of the other is a control, and may be asked at the same server.
    """
    if not isinstance(engine, Attached):
        return
    recipe = loaded.recipe
    checkpoints = {BASELINE: recipe.model} | {name: each.checkpoint or each for name, each in recipe.variants.items()}
    options = {BASELINE: loaded.engine_options, **loaded.variant_engine_options}
    for one, other in combinations(options, 2):
        (address, name), (another, other_name) = engine.asked(options[one]), engine.asked(options[other])
        is_same = address == another and (name == other_name or None in {name, other_name})
        if is_same and checkpoints[one] != checkpoints[other]:
            raise RecipeError(
                f"variants.{other}: it would be asked at {address} as {one} is: one server would answer for both",
                advice=f"in its `engine_args` give {other} a server, or a name on that server, of its own",
            )
