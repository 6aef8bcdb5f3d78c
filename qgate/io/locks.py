"""Environment locks: a name in, every pinned package and what the environment must be able to do out. Reads the disk.

A lock is recipes/locks/NAME.txt: `name==version` lines, complete, beneath `# key: value` directives:

    # description: one line
    # python: 3.11, 3.12         interpreters that it was resolved for
    # platform: linux-x86_64     sys.platform-machine, several with commas
    # size_mb: 1500              disk that the built environment takes
    # first: torch               installed first and with its own dependencies, under the lock's pins: what it needs
                                 beside them depends on the build that the index hands out (CPU or CUDA)
    # check: import torch        Python that must run before the environment is taken

Any other comment is for people. Index addresses and options are refused: where packages come from is pip's business.

A tool whose packages differ between a machine with an NVIDIA GPU and one without has a lock for each, NAME-cuda.txt and
NAME-cpu.txt; its own NAME then means the one that fits this machine.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from qgate.errors import EnvError, UserError
from qgate.io.home import home
from qgate.io.shipped import shipped_folder
from qgate.wording import near_or_known

CUDA, CPU = "-cuda", "-cpu"
NVIDIA_DRIVER = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""One of them is there where NVIDIA's driver is: on Linux, in a container, under WSL."""
_DIRECTIVE = re.compile(r"#\s*(description|python|platform|size_mb|first|check):\s*(\S.*)")
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.+!_-]*)")


@dataclass(frozen=True)
class Lock:
    """A parsed lock file."""

    name: str
    path: Path
    sha256: str
    description: str
    pythons: tuple[str, ...]
    platforms: tuple[str, ...]
    size_bytes: int
    first: tuple[str, ...]
    check: str
    pins: dict[str, str]
    """Normalised package name to version."""


def folders() -> tuple[Path, ...]:
    """Where locks lie, first found wins: the user's own, the shipped ones."""
    return (home() / "locks", shipped_folder("recipes") / "locks")


def names() -> list[str]:
    """Every lock's name, sorted."""
    return sorted({path.stem for folder in folders() if folder.is_dir() for path in folder.glob("*.txt")})


def find(name: str) -> Lock:
    """The lock `name`, or the one of `name` for this machine. Raises UserError, with the near match if there is one."""
    for wanted in (name, name + (CUDA if has_nvidia_driver() else CPU)):
        for folder in folders():
            path = folder / f"{wanted}.txt"
            if path.is_file():
                return parse(path)
    here = names()
    known = sorted({*here, *(stem.removesuffix(CUDA) for stem in here if stem.removesuffix(CUDA) + CPU in here)})
    advice = near_or_known(name, ["current", *known], "a path to a python, or one of")
    raise UserError(f"no environment named {name!r}", advice=advice)


def has_nvidia_driver() -> bool:
    """Whether this machine has a driver for NVIDIA GPUs."""
    return any(sign.exists() for sign in NVIDIA_DRIVER)


def normalise(name: str) -> str:
    """A package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse(path: Path) -> Lock:
    """Read a lock file. Raises EnvError on anything but pins, comments and directives."""
    text = path.read_text(encoding="utf-8")
    said: dict[str, str] = {}
    pins: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if directive := _DIRECTIVE.fullmatch(line):
            said[directive[1]] = directive[2].strip()
        elif line and not line.startswith("#"):
            if (pin := _PIN.fullmatch(line)) is None:
                raise EnvError(f"{path}:{number}: not a `name==version` pin: {line}", advice="pin the package exactly")
            pins[normalise(pin[1])] = pin[2]
    missing = [key for key in ("python", "platform", "check") if key not in said]
    if missing or not pins:
        raise EnvError(f"{path}: no {' and no '.join(missing) or 'pins'}", advice="see the other locks for the form")
    return Lock(
        name=path.stem,
        path=path,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        description=said.get("description", ""),
        pythons=_words(said["python"]),
        platforms=_words(said["platform"]),
        size_bytes=int(said.get("size_mb", "0")) * 1_000_000,
        first=_words(said.get("first", "")),
        check=said["check"],
        pins=pins,
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"[,\s]+", text) if word)
