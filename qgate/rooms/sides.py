"""A loaded incident in, what serves each arm out: engines, tools, checkpoints. Reads disk and network; unpacks GGUF files."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from qgate.io import envs
from qgate.io.files import disk_errors, sha256_file, sha256_files
from qgate.io.incident import LoadedIncident, LoadedSide
from qgate.io.store import Store
from qgate.io.view import read_files
from qgate.judge import file_swap
from qgate.judge.request_body import server_defaults
from qgate.levers import Lever
from qgate.ports import NO_TOOL, Engine, Tool, Watcher, load_engine
from qgate.rooms.obtain import GGUF_LOCK, Shelf, obtain_model
from qgate.rooms.replay import Setup
from qgate.schemas.base import content_key
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.incident import Side
from qgate.schemas.repro import Arm
from qgate.schemas.variant import GgufSource

DTYPES = {"half": "float16", "float": "float32"}
REFERENCE = "transformers"
"""The engine that others are held against: it runs a checkpoint's arithmetic without special kernels."""


@dataclass(frozen=True)
class Sides:
    """What answers in each arm."""

    setups: Mapping[Arm, Setup]
    checkpoints: Mapping[Arm, Checkpoint]
    """Missing for an arm at a URL."""
    files: Mapping[Arm, file_swap.Files]
    """Their small files, by name."""
    own_defaults: Mapping[Arm, Mapping[str, Any]]
    """Sampling values that each would fill in by itself."""

    @property
    def candidate(self) -> Setup:
        """As filed."""
        return self.setups["candidate"]

    @property
    def both_at_hand(self) -> bool:
        """Whether both checkpoints are."""
        return len(self.checkpoints) == 2


def sides(loaded: LoadedIncident, store: Store, folder: Path, watcher: Watcher) -> Sides:
    """Look up all that the incident names. Raises PluginError, EnvError, CheckpointError, QuantizeError, StoreError."""
    setups: dict[Arm, Setup] = {}
    checkpoints: dict[Arm, Checkpoint] = {}
    files: dict[Arm, file_swap.Files] = {}
    defaults: dict[Arm, Mapping[str, Any]] = {}
    with disk_errors(folder, errno.ENOENT, errno.EEXIST):
        folder.mkdir(parents=True, exist_ok=True)
    for arm, side in loaded.sides.items():
        dtype = _dtype(side, {})
        if side.side.checkpoint is not None:
            checkpoints[arm] = _checkpoint(side.side, arm, Shelf(store, watcher), folder)
            files[arm] = read_files(checkpoints[arm].path, file_swap.SMALL_FILES)
            dtype = _dtype(side, files[arm])
        if arm == "baseline" and side.side.dtype == "auto" and side.launched.dtype in {None, "auto"}:
            dtype = setups["candidate"].dtype
        setups[arm] = _setup(arm, side, checkpoints.get(arm), folder, dtype)
        defaults[arm] = _own_defaults(side, files.get(arm, {}))
    return Sides(setups, checkpoints, files, defaults)


def _setup(arm: Arm, loaded: LoadedSide, checkpoint: Checkpoint | None, folder: Path, dtype: str) -> Setup:
    engine = load_engine(loaded.side.engine_name)
    tool = tool_of(engine, loaded.side.env)
    address = _address(loaded.side, folder)
    return Setup(
        arm=arm,
        engine=engine,
        tool=tool,
        device=engine.device(tool),
        options=loaded.options,
        dtype=dtype,
        folder=folder if checkpoint is None else checkpoint.path,
        digest=address if checkpoint is None else checkpoint.digest,
        workers=sha256_files(engine.workers),
        max_model_len=loaded.launched.max_model_len,
    )


def _address(side: Side, folder: Path) -> str:
    """What stands for a running server. It may have changed since a run that was finished: the next one asks it anew."""
    finished = folder / "repro.json"
    said = {"url": side.url, "model": side.model, "repro": folder.name}
    return content_key(said | ({"after": sha256_file(finished)} if finished.is_file() else {}))


def tool_of(engine: Engine, env: str | None) -> Tool:
    """The environment that an engine runs in. Raises EnvError."""
    spec = env or engine.lock
    return NO_TOOL if spec is None else envs.resolve(spec)


def with_lever(setup: Setup, lever: Lever) -> Setup:
    """The setup with a lever pulled."""
    options = setup.options.model_dump()
    options |= _merged(options, lever.options)
    return replace(setup, options=type(setup.options).model_validate(options), dtype=lever.dtype or setup.dtype)


def _merged(options: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Variables are added to those that are there; everything else takes the place of what is there."""
    return {name: {**options[name], **value} if isinstance(value, dict) else value for name, value in changed.items()}


def with_engine(setup: Setup, engine: Engine, env: str | None, options: BaseModel) -> Setup:
    """The same checkpoint in another engine."""
    tool = tool_of(engine, env)
    return replace(
        setup,
        engine=engine,
        tool=tool,
        device=engine.device(tool),
        options=options,
        workers=sha256_files(engine.workers),
    )


def with_checkpoint(setup: Setup, checkpoint: Checkpoint) -> Setup:
    """Another checkpoint in the same engine."""
    return replace(setup, folder=checkpoint.path, digest=checkpoint.digest)


def _checkpoint(side: Side, arm: Arm, shelf: Shelf, folder: Path) -> Checkpoint:
    source = side.checkpoint
    assert source is not None
    if not isinstance(source, GgufSource):
        return obtain_model(source, arm)
    dtype = "float16" if side.dtype in {"auto", "float32"} else side.dtype
    return shelf.unpacked(arm, source, dtype, envs.resolve(GGUF_LOCK), folder / "work" / arm)


def _dtype(loaded: LoadedSide, files: file_swap.Files) -> str:
    said = loaded.side.dtype if loaded.side.dtype != "auto" else loaded.launched.dtype
    if said in {None, "auto"}:
        said = file_swap.arithmetic(files)
    return DTYPES.get(said or "float16", said or "float16")


def _own_defaults(loaded: LoadedSide, files: file_swap.Files) -> dict[str, Any]:
    if not loaded.launched.own_sampling_defaults:
        return {}
    return server_defaults(file_swap.generation_config(files))
