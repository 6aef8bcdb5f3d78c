"""Tool environments: a spec (`current`, a lock's name, a path to a python) in, a Tool or a clear EnvError out.

Reads folders only; nothing is spawned for a locked environment, so that a cached run stays fast. Building one is
`qgate.io.env_build`.

    root()/NAME-<lock hash>            a link to the build, made last: what it points to is whole and has been checked
    root()/builds/NAME-<lock hash>-…   the environments themselves, and what an interrupted build left
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from qgate.errors import EnvError
from qgate.io import distributions, locks
from qgate.io.distributions import Interpreter
from qgate.io.files import read_object
from qgate.io.home import home
from qgate.io.locks import Lock
from qgate.ports import NO_TOOL, Tool

MARKER = "qgate-env.json"

State = Literal["built", "missing", "changed"]


@dataclass(frozen=True)
class EnvStatus:
    """What is there of a locked environment."""

    name: str
    description: str
    state: State
    detail: str
    """Why it cannot be used, or the packages that differ; empty where it is built."""
    folder: Path
    num_packages: int
    size_bytes: int
    """Disk that the lock says it takes; 0 where it does not say."""

    @property
    def ready(self) -> bool:
        """Whether `resolve` would take it."""
        return self.state == "built"

    @property
    def summary(self) -> str:
        """One line: where it is, or why it cannot be used."""
        return f"{self.num_packages} packages in {self.folder}" if self.ready else self.detail


def root() -> Path:
    """Folder of the built environments."""
    return home() / "envs"


def folder_of(lock: Lock) -> Path:
    """Where the environment of this very lock lies when it is built."""
    return root() / f"{lock.name}-{lock.sha256[:12]}"


def resolve(spec: str) -> Tool:
    """The tool that `spec` names. Raises EnvError, with the command that mends it.

    `QGATE_PYTHON_<LOCK>` (QGATE_PYTHON_VLLM) puts a python of the user's in the place of a locked environment, for an
    image that has the tool already. Of a tool with a lock per machine, its own name (QGATE_PYTHON_AUTOAWQ) will do too.
    """
    if spec == "current":
        return Tool(Path(sys.executable), _identity(distributions.current()))
    if os.sep in spec or spec.startswith("~"):
        return _given(spec, "name an executable, `current`, or a lock: `qgate env list`")
    lock = locks.find(spec)
    for name in (spec, lock.name):
        if chosen := os.environ.get(variable := f"QGATE_PYTHON_{name.upper().replace('-', '_')}"):
            return _given(chosen, f"{variable} must name an executable; unset it to use the locked environment")
    state, detail = _state(lock)
    if state != "built":
        raise EnvError(f"the environment {lock.name!r} {detail}", advice=f"qgate env build {lock.name}")
    python = folder_of(lock) / "bin" / "python"
    return Tool(python, _identity(_interpreter(python)))


def _given(spec: str, advice: str) -> Tool:
    """A python that the user manages: identified by what is installed for it. Raises EnvError."""
    python = Path(spec).expanduser().absolute()
    if not python.is_file() or not os.access(python, os.X_OK):
        raise EnvError(f"no python at {spec}", advice=advice)
    return Tool(python, _identity(distributions.probe(python)))


def packages(tool: Tool, names: Iterable[str]) -> dict[str, str]:
    """Versions of those of `names` that the tool would import."""
    found = distributions.installed(_interpreter(tool.python).path)
    wanted = {name: locks.normalise(name) for name in names}
    return {name: found[key] for name, key in wanted.items() if key in found}


def site_packages(tool: Tool) -> tuple[Path, ...]:
    """The folders that the tool imports packages from, in order; none where there is no tool."""
    return () if tool == NO_TOOL else _interpreter(tool.python).path


def status(name: str) -> EnvStatus:
    """What is there of the locked environment `name`. Raises EnvError where there is no such lock."""
    lock = locks.find(name)
    state, detail = _state(lock)
    return EnvStatus(
        name=lock.name,
        description=lock.description,
        state=state,
        detail=detail,
        folder=folder_of(lock),
        num_packages=len(lock.pins),
        size_bytes=lock.size_bytes,
    )


def states() -> list[EnvStatus]:
    """Every lock's environment."""
    return [status(name) for name in locks.names()]


def site_of(folder: Path) -> Path:
    """The site-packages of the virtual environment `folder`, without asking it."""
    found = sorted((folder / "lib").glob("python3*/site-packages"))
    return found[0] if found else folder / "lib"


def _state(lock: Lock) -> tuple[State, str]:
    folder = folder_of(lock)
    marker = read_object(folder / MARKER)
    if "packages" not in marker:
        older = any(path.name != folder.name for path in root().glob(f"{lock.name}-" + "?" * 12))
        return "missing", "was built from an older lock" if older else "is not built"
    now = distributions.installed([site_of(folder)])
    differing = sorted(
        name for name in now.keys() | marker["packages"].keys() if now.get(name) != marker["packages"].get(name)
    )
    if differing:
        return "changed", f"was changed after it was built ({', '.join(differing[:5])})"
    if not (folder / "bin" / "python").exists():
        return "changed", "has lost its base interpreter"
    return "built", ""


def _interpreter(python: Path) -> Interpreter:
    """The interpreter, from the marker where it is a locked environment's."""
    if python == Path(sys.executable):
        return distributions.current()
    folder = python.parent.parent
    marker = read_object(folder / MARKER) if folder.parent == root() else {}
    if "python" not in marker:
        return distributions.probe(python)
    overlay = [Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return Interpreter(marker["python"], (*overlay, site_of(folder)))


def _identity(interpreter: Interpreter) -> str:
    return distributions.identity(interpreter.version, distributions.installed(interpreter.path))
