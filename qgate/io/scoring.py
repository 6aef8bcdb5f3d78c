"""A scorer's name in, the scorer out: built in or a plugin. Looks up entry points; touches nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from qgate import scorers
from qgate.errors import EvalsetError
from qgate.ports import Scorer, load_plugin, plugin_names
from qgate.schemas.evalset import Evalset
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
