"""A scorer's name in, the scorer out: built in or a plugin. Looks up entry points; touches nothing else."""

from __future__ import annotations

from importlib.metadata import entry_points

from qgate import scorers
from qgate.ports import Scorer, load_plugin


def load_scorer(name: str) -> Scorer:
    """The scorer of that name. Raises PluginError with near matches."""
    if name not in scorers.NAMES and name in {point.name for point in entry_points(group="qgate.scorers")}:
        plugin: Scorer = load_plugin("scorers", name)
        return plugin
    return scorers.load(name)
