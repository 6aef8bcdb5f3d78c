"""The two seams to heavy tools: the Quantizer and Engine Protocols, and their lookup by entry point.

A plugin is one small module with one object that satisfies a Protocol; qgate's own register as a stranger's would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from qgate.errors import PluginError
from qgate.schemas.answers import Answer, EngineFacts, GenerateRequest, ScoreRequest, TokenScores
from qgate.sizing.ledger import Ledger
from qgate.sizing.model import Model
from qgate.sizing.placement import Berth, Device
from qgate.wording import near_or_known

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Tool:
    """A plugin's tool: the python that runs its workers, and what identifies its bytes."""

    python: Path
    identity: str
    """Lock hash or package list hash: part of every content key."""


NO_TOOL = Tool(python=Path(), identity="none")
"""Of an engine that starts nothing; and in a plan, in the place of an environment that is not built."""


@dataclass(frozen=True)
class QuantizeJob:
    """What a quantizer is handed. All paths exist, except `output`, whose parent does."""

    model: Path
    output: Path
    options: BaseModel
    dtype: str
    calibration_file: Path | None
    """JSON lines with `text` or chat `messages` each: already chosen, shuffled and cut to the number of samples."""
    sequence_length: int
    seed: int
    work: Path
    """A scratch folder for request, result and log."""

    def request(self, **own: Any) -> dict[str, Any]:
        """request.json as every worker that reads texts takes it, and what one takes beside."""
        return {
            "model": str(self.model),
            "output": str(self.output),
            "scratch": str(self.work / "made"),
            "dtype": self.dtype,
            "calibration_file": None if self.calibration_file is None else str(self.calibration_file),
            "sequence_length": self.sequence_length,
            "seed": self.seed,
            "progress_file": str(self.work / "progress.json"),
            **own,
        }


def checked(options: BaseModel, own: type[M]) -> M:
    """A plugin's options as its own model, as which qgate validated them."""
    assert isinstance(options, own), f"options of another plugin: {type(options).__name__}"
    return options


@runtime_checkable
class Quantizer(Protocol):
    """Makes a checkpoint in another precision."""

    name: str
    options: type[BaseModel]
    lock: str
    """Name of the default environment lock."""
    worker: Path
    """Script run as `python worker.py request.json result.json`; its bytes are part of the key."""

    def precision(self, options: BaseModel) -> str:
        """Precision that these options give, as vLLM writes it."""

    def needs_calibration(self, options: BaseModel) -> bool:
        """Whether the algorithm needs texts."""

    def group_size(self, options: BaseModel) -> int | None:
        """Columns that share a scale, where weights are grouped."""

    def ignored(self, options: BaseModel) -> tuple[str, ...]:
        """Module names or `re:` patterns left unquantized."""

    def request(self, job: QuantizeJob) -> dict[str, Any]:
        """The worker's request.json."""


@runtime_checkable
class Archived(Protocol):
    """What a quantizer has beside whose package is archived upstream: it works, and is on its way out."""

    succession: str
    """One sentence for its users: since when, what its successor is, and what changes with it."""


@dataclass(frozen=True)
class ServeJob:
    """What an engine is handed to serve one checkpoint."""

    checkpoint: Path
    name: str
    """Variant name, for messages and as the served model's name."""
    dtype: str
    options: BaseModel
    tool: Tool
    concurrency: int
    request_timeout_s: float
    stall_timeout_s: float
    repeatable: bool
    max_model_len: int | None
    """Tokens that hold every prompt and answer of this run; None: the model's own limit (and for engines that are not
    `Sized`, which take each request as long as it is)."""
    log: Path
    """File for the server's or worker's output."""
    work: Path
    """An existing scratch folder."""
    needs_scores: bool = False
    """Whether `score` will be called (an engine may have to start differently)."""
    lengths: tuple[int, ...] = ()
    """Likely tokens, prompt and answer, of the requests that will be in flight together, for a `Sized` engine."""
    berth: Berth | None = None
    """Room that was set aside for this server; None: it takes what its options say."""
    most_together: int = 1
    """Servers that this run may have up at once, this one among them: they share the machine's cores."""


@runtime_checkable
class Session(Protocol):
    """A checkpoint being served."""

    facts: EngineFacts

    def generate(self, requests: Iterable[GenerateRequest]) -> Iterator[Answer]:
        """One Answer per request, as they finish. Raises DiedError, HungError; per-request faults are answers."""

    def score(self, requests: Iterable[ScoreRequest]) -> Iterator[TokenScores]:
        """One TokenScores per request, in the order they finish: without a token where a text cannot be scored.

        Raises DiedError, HungError, EngineError.
        """


@runtime_checkable
class Engine(Protocol):
    """Serves a checkpoint. `open` yields a Session; leaving the context ends every process it started."""

    name: str
    options: type[BaseModel]
    lock: str | None
    """Name of the default environment lock; None where the engine starts nothing."""
    workers: tuple[Path, ...]
    """Scripts whose bytes are part of the key."""

    def device(self, tool: Tool) -> str:
        """The device that the numbers will come from (part of the key), without starting anything slow."""

    def open(self, job: ServeJob) -> AbstractContextManager[Session]:
        """Serve `job.checkpoint`. Raises StartError."""


@runtime_checkable
class Sized(Protocol):
    """An engine whose servers take room on GPUs, and that can tell beforehand how much."""

    def devices(self, tool: Tool) -> tuple[Device, ...]:
        """The GPUs that its servers may use, with what is free on each; empty where there is none."""

    def size(self, job: ServeJob, model: Model, device: Device | None) -> Ledger:
        """What a server of `model` takes, on GPUs like `device`. Raises CheckpointError where that cannot be told."""

    def split(self, options: BaseModel) -> tuple[int, int]:
        """Tensor-parallel and pipeline-parallel size."""


@runtime_checkable
class Repeatable(Protocol):
    """An engine that has kernels whose answers do not depend on what else is in the batch."""

    def repeats(self, tool: Tool) -> bool:
        """Whether they are there in `tool`."""


@runtime_checkable
class Attached(Protocol):
    """An engine that starts nothing: who answers is who its options name, whatever the checkpoint is."""

    def asked(self, options: BaseModel) -> tuple[str, str | None]:
        """The server's address, and the name that is asked for there; None: the only one that it serves."""

    def served(self, options: BaseModel) -> Mapping[str, Any] | None:
        """What the server says that it serves to these options, as far as it tells; None where it says nothing now."""


Scorer = Callable[[str, dict[str, Any], str], float]
"""(answer text, arguments, language) → score in [0, 1]. Pure. Malformed answers score 0; bad arguments: ValueError."""


@runtime_checkable
class Referenced(Protocol):
    """What a scorer has beside whose arguments hold a right answer as a whole."""

    def reference(self, args: dict[str, Any]) -> str | None:
        """That answer, which the scorer gives 1; None where these arguments hold none. Pure."""


class Task(Protocol):
    """A stretch of work that is being watched."""

    def advance(self, num: int = 1) -> None:
        """So many more units are done."""

    def detail(self, text: str) -> None:
        """What is being done just now, in a few words."""


class Watcher(Protocol):
    """Who is shown what a long run is doing. Called from several threads."""

    def task(self, label: str, total: int | None, done: int = 0) -> AbstractContextManager[Task]:
        """A stretch of `total` units (None: unknown), of which `done` were there before."""

    def note(self, text: str) -> None:
        """One line that stays visible."""


def plugin_names(group: str) -> list[str]:
    """Names registered under the entry points `qgate.<group>`, sorted."""
    return sorted({point.name for point in entry_points(group=f"qgate.{group}")})


def load_plugin(group: str, name: str) -> Any:
    """The object registered as `name` under the entry points `qgate.<group>`. Raises PluginError with near matches."""
    known = {point.name: point for point in entry_points(group=f"qgate.{group}")}
    if name not in known:
        raise PluginError(f"no {group.rstrip('s')} named {name!r}", advice=near_or_known(name, sorted(known)))
    try:
        return known[name].load()
    except Exception as error:
        raise PluginError(f"the {group.rstrip('s')} plugin {name!r} does not load: {error}") from error


def load_engine(name: str) -> Engine:
    """The engine plugin `name`. Raises PluginError."""
    plugin = load_plugin("engines", name)
    if not isinstance(plugin, Engine):
        raise PluginError(f"the engine plugin {name!r} does not satisfy the Engine protocol")
    return plugin


def load_quantizer(name: str) -> Quantizer:
    """The quantizer plugin `name`. Raises PluginError."""
    plugin = load_plugin("quantizers", name)
    if not isinstance(plugin, Quantizer):
        raise PluginError(f"the quantizer plugin {name!r} does not satisfy the Quantizer protocol")
    return plugin
