"""The packages that a Python would import: an interpreter in, {name: version} out. Lists folders; spawns at most once.

Names and versions are those of the *.dist-info folders on its sys.path, the first of a name being the one that counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from qgate.errors import EnvError
from qgate.io import proc
from qgate.io.files import read_object, write_text
from qgate.io.home import home
from qgate.io.locks import normalise
from qgate.schemas.base import content_key

PROBE = "import json, sys; print(json.dumps([sys.version.split()[0], sys.path]))"
_SUFFIXES = (".dist-info", ".egg-info")


@dataclass(frozen=True)
class Interpreter:
    """A Python: its full version and the folders that it imports from, in order."""

    version: str
    path: tuple[Path, ...]


def current() -> Interpreter:
    """The Python that runs qgate."""
    return Interpreter(sys.version.split(maxsplit=1)[0], _existing(sys.path))


def probe(python: Path) -> Interpreter:
    """Another Python, asked once; the answer is kept while the executable and its folders stay as they were.

    Raises EnvError where it does not run.
    """
    cache = home() / "cache" / "pythons.json"
    known = read_object(cache)
    stamp = _stamp(python, known.get(str(python), {}).get("path", []))
    entry = known.get(str(python))
    if entry is None or entry.get("stamp") != stamp:
        said = proc.output([str(python), "-c", PROBE], timeout_s=60)
        if said is None:
            raise EnvError(f"{python} does not run", advice="name a Python 3 interpreter, or `qgate env build NAME`")
        version, path = json.loads(said)
        entry = {"version": version, "path": path, "stamp": _stamp(python, path)}
        write_text(cache, json.dumps(known | {str(python): entry}, indent=1))
    return Interpreter(entry["version"], _existing(entry["path"]))


def installed(folders: Iterable[Path]) -> dict[str, str]:
    """Normalised name to version of every distribution under `folders`."""
    found: dict[str, str] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            for entry in sorted(folder.iterdir()):
                if entry.suffix in _SUFFIXES and "-" in entry.stem:
                    name, version = entry.stem.split("-")[:2]
                    found.setdefault(normalise(name), version)
    return found


def identity(version: str, packages: Mapping[str, str]) -> str:
    """What can change a tool's bytes, as one key: Python's version and every package but the installer."""
    return content_key({"python": version, "packages": {n: v for n, v in packages.items() if n != "pip"}})


def _existing(path: Iterable[str]) -> tuple[Path, ...]:
    return tuple(Path(entry) for entry in path if entry and Path(entry).is_dir())


def _stamp(python: Path, path: Iterable[str]) -> list[str]:
    """Changes when the executable, PYTHONPATH, or a folder's direct entries (a .pth file) do."""
    stamps = [str(python.stat().st_mtime_ns), os.environ.get("PYTHONPATH", "")]
    return stamps + [str(folder.stat().st_mtime_ns) for folder in _existing(path)]
