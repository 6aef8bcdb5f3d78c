"""The seam to what of an engine could be at fault: levers, launch arguments, and their lookup by entry point. Pure.

An engine serves without it; `qgate repro` asks it what else to try. Registered by the engine's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel

from qgate.errors import PluginError
from qgate.ports import load_plugin, plugin_names
from qgate.schemas.answers import EngineFacts


@dataclass(frozen=True)
class Lever:
    """One thing about an engine that could be at fault, and what takes it away."""

    name: str
    """In a word, e.g. `eager`."""
    change: str
    """What is changed, for a reader, e.g. `no CUDA graphs`."""
    separates: str
    """What it tells apart, e.g. `graphs from kernels`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that differ: the server is started again."""
    dtype: str | None = None
    """Another arithmetic: the server is started again."""
    widens: bool = False
    """Whether it is of a wider range: what overflows in float16 does not in it."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """Fields of each request that differ, where that is enough; `{try}` in a text becomes the try's own."""

    @property
    def needs_start(self) -> bool:
        """Whether another server is needed."""
        return bool(self.options or self.dtype)


@dataclass(frozen=True)
class Launched:
    """What a server's launch arguments say, in an engine's own options."""

    options: Mapping[str, Any]
    dtype: str | None = None
    max_model_len: int | None = None
    own_sampling_defaults: bool = True
    """Whether the server fills in sampling values from the checkpoint's generation_config.json."""
    model: str | None = None
    left_out: tuple[str, ...] = ()
    """Arguments that do not matter here (host, port) or are secret (a key)."""


@runtime_checkable
class Isolating(Protocol):
    """What of an engine could be at fault."""

    def levers(self, options: BaseModel, facts: EngineFacts) -> tuple[Lever, ...]:
        """What could be changed about a server with these options and facts, cheapest first."""

    def launched(self, words: Sequence[str]) -> Launched:
        """What launch arguments come to. Raises ValueError."""


def load_isolating(name: str) -> Isolating | None:
    """What of the engine `name` could be at fault; None where nobody registered it. Raises PluginError."""
    if name not in plugin_names("isolation"):
        return None
    plugin = load_plugin("isolation", name)
    if not isinstance(plugin, Isolating):
        raise PluginError(f"the isolation plugin {name!r} does not satisfy the Isolating protocol")
    return plugin
