"""A scorer's name in, the scorer out: built in or a plugin; items in, the right answers that their scorers know out.

Looks up entry points; touches nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qgate import scorers
from qgate.errors import EvalsetError
from qgate.ports import Referenced, Scorer, load_plugin, plugin_names
from qgate.schemas.evalset import Evalset, Item
from qgate.scorers.builtin import BuiltIn


def load_scorer(name: str) -> Scorer:
    """The scorer of that name. Raises PluginError with near matches."""
    if name in scorers.NAMES or name not in plugin_names("scorers"):
        return scorers.load(name)
    plugin: Scorer = load_plugin("scorers", name)
    return plugin


def scorers_of(sets: Iterable[Evalset]) -> dict[str, Scorer]:
    """Every scorer that the sets name, its arguments checked. Raises EvalsetError, PluginError."""
    found: dict[str, Scorer] = {}
    for evalset in sets:
        for item in evalset.items:
            scorer = found.setdefault(item.scorer.name, found.get(item.scorer.name) or load_scorer(item.scorer.name))
            try:
                if isinstance(scorer, BuiltIn):
                    scorer.read(item.scorer.args)
            except ValueError as error:
                raise EvalsetError(
                    f"{evalset.name}, item {item.id}: scorer {error}",
                    advice="docs/scorers.md has the arguments of each",
                ) from error
    return found


def with_references(evalset: Evalset, scorers: Mapping[str, Scorer]) -> Evalset:
    """The set with a right answer in each item that has one, its own or the one that its scorer's arguments hold.

    Raises EvalsetError where a plugin's scorer fails to say.
    """
    return evalset.model_copy(update={"items": tuple(_with_reference(item, scorers) for item in evalset.items)})


def _with_reference(item: Item, scorers: Mapping[str, Scorer]) -> Item:
    scorer = scorers[item.scorer.name]
    if item.reference is not None or not isinstance(scorer, Referenced):
        return item
    try:
        reference = scorer.reference(item.scorer.args)
    except Exception as error:
        raise EvalsetError(f"the scorer {item.scorer.name!r} fails on item {item.id}: {error}") from error
    return item if reference is None or not reference.strip() else item.model_copy(update={"reference": reference})
