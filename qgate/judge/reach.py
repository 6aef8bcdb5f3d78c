"""A recipe and the items that it would ask → which criteria cannot PASS on so few, whatever comes out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qgate.judge.arms import Scope
from qgate.judge.decide import fewest_to_pass
from qgate.schemas.recipe import REFERENCES, TOKEN_METRICS, Criterion, Recipe

Counts = Mapping[str, int | None]
"""Items of each set by its name without version; None: not known yet."""


def out_of_reach(recipe: Recipe, num_items: Counts, num_references: Counts) -> Iterator[str]:
    """A sentence for each such criterion. `num_references`: of the items, those that have a right answer."""
    for name, tier in recipe.tiers.items():
        for criterion in tier.criteria:
            counts = num_references if criterion.of == REFERENCES else num_items
            most = _most_items(recipe, criterion, counts)
            least = fewest_to_pass(criterion, recipe.statistics)
            if most is not None and most < least:
                yield (
                    f"tier {name}: {criterion.metric} takes {least} items to pass at the least, and at most {most} are "
                    "judged: it will be INCONCLUSIVE; add items, raise token_evidence.max_items or drop the criterion"
                )


def _most_items(recipe: Recipe, criterion: Criterion, num_items: Counts) -> int | None:
    """Items that the criterion can speak of, whichever slice it asks for; None where that is not known."""
    wanted = Scope.of(criterion).evalset
    counts = [num for name, num in num_items.items() if wanted in {None, name}]
    bound = recipe.token_evidence.max_items if criterion.metric in TOKEN_METRICS else None
    known = [num for num in counts if num is not None]
    if len(known) < len(counts):
        return None
    return sum(num if bound is None else min(num, bound) for num in known)
