"""A scorer's name in, the scorer out: built in or a plugin. Looks up entry points; touches nothing else."""

from __future__ import annotations

from qgate import scorers
from qgate.ports import Scorer, load_plugin, plugin_names


def load_scorer(name: str) -> Scorer:
    """The scorer of that name. Raises PluginError with near matches."""
    if name in scorers.NAMES or name not in plugin_names("scorers"):
        return scorers.load(name)
    plugin: Scorer = load_plugin("scorers", name)
    return plugin
