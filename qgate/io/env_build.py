"""Building and removing locked environments: a lock in, a checked virtual environment in its place out.

Built beside under a name of its own, checked, marked, and only then linked into place; whatever an interrupted build
left is swept by the next. A file lock keeps two builders of one environment apart: the second finds it finished.
"""

from __future__ import annotations

import contextlib
import json
import platform
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from qgate.errors import EnvError, UserError
from qgate.io import distributions, locks, proc
from qgate.io.envs import MARKER, folder_of, resolve, root, site_of, status
from qgate.io.files import alone, disk_errors, room, write_text
from qgate.io.locks import Lock
from qgate.ports import Task, Tool, Watcher

CHECK_TIMEOUT_S = 600.0
POLL_S = 0.5
_COLLECTED = re.compile(r"^(?:Collecting|Requirement already satisfied:) ([A-Za-z0-9._-]+)", re.MULTILINE)


def build(name: str, watcher: Watcher, *, again: bool = False) -> Tool:
    """The environment of the lock `name`, built unless it is there (`again`: built anew in any case).

    Raises EnvError where this machine does not fit the lock, a package cannot be had, or the check fails.
    """
    lock = locks.find(name)
    with _held(lock.name, lambda: watcher.note(f"another qgate builds the environment {lock.name}: waiting for it")):
        if again or status(lock.name).state != "built":
            python = _interpreter_for(lock)
            _sweep(lock.name)
            _room_for(lock)
            with disk_errors(root()):
                _build(lock, python, watcher)
            _sweep(lock.name)
    return resolve(lock.name)


def remove(name: str) -> int:
    """Remove every environment built under `name`, whatever its lock was. Returns how many there were.

    Raises UserError where there is neither a lock of that name nor what was built from one that is gone.
    """
    links = _links(name)
    try:
        name = locks.find(name).name
        links = _links(name)
    except UserError:
        if not links:
            raise
    with _held(name):
        for link in links:
            link.unlink()
        _sweep(name)
    return len(links)


def _links(name: str) -> list[Path]:
    return [path for path in root().glob("*-" + "?" * 12) if path.name[:-13] == name and path.is_symlink()]


def _build(lock: Lock, python: str, watcher: Watcher) -> None:
    target = root() / "builds" / f"{folder_of(lock).name}-{secrets.token_hex(4)}"
    log = root() / "logs" / f"{lock.name}.log"
    log.unlink(missing_ok=True)
    started = time.monotonic()
    with watcher.task(f"environment {lock.name}", total=len(lock.pins)) as task:
        task.detail("creating")
        bare = ["--without-pip"] if _has_pip() else []
        _run([python, "-m", "venv", *bare, str(target)], log, f"creating the environment {lock.name}")
        _install(lock, target, log, task)
        task.detail("checking")
        found = _checked(lock, target, log)
    version = proc.output([str(target / "bin" / "python"), "-c", distributions.PROBE])
    marker = {
        "name": lock.name,
        "lock_sha256": lock.sha256,
        "python": json.loads(version or "[null]")[0],
        "packages": found,
        "wall_s": time.monotonic() - started,
    }
    write_text(target / MARKER, json.dumps(marker, indent=1) + "\n")
    _link(target, folder_of(lock))


def _install(lock: Lock, target: Path, log: Path, task: Task) -> None:
    """Everything that the lock pins, and nothing else but what the lock's `first` packages bring along."""
    pip = [*_pip_of(target), "install", "--no-input", "--disable-pip-version-check"]
    if lock.first:
        pins = [f"{name}=={lock.pins[locks.normalise(name)]}" for name in lock.first]
        _pip(lock, [*pip, "-c", str(lock.path), *pins], log, task)
    _pip(lock, [*pip, "--no-deps", "-r", str(lock.path)], log, task)


def _has_pip() -> bool:
    """Whether qgate's own Python has pip, which then serves the new environment too (quicker than giving it its own)."""
    return find_spec("pip") is not None


def _pip_of(target: Path) -> list[str]:
    python = str(target / "bin" / "python")
    return [sys.executable, "-m", "pip", "--python", python] if _has_pip() else [python, "-m", "pip"]


def _pip(lock: Lock, argv: Sequence[str], log: Path, task: Task) -> None:
    with proc.Child(argv, log=log) as child:
        seen = _num_collected(log)
        while (code := child.wait(POLL_S)) is None:
            now = _num_collected(log)
            task.advance(now - seen)
            task.detail("installing" if "Installing collected packages" in proc.tail(log, 3) else "downloading")
            seen = now
    if code != 0:
        raise _failed(f"installing the environment {lock.name}", argv, code, log)


def _num_collected(log: Path) -> int:
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return len(set(_COLLECTED.findall(text)))


def _checked(lock: Lock, target: Path, log: Path) -> dict[str, str]:
    """The installed packages, after the pins are found to be there and the lock's check to run. Raises EnvError."""
    found = distributions.installed([site_of(target)])
    wrong = [
        f"{n} {found.get(n, 'missing')}"
        for n, v in lock.pins.items()
        if found.get(n, "").split("+")[0] != v.split("+")[0]
    ]
    if wrong:
        raise EnvError(
            f"the environment {lock.name} is not what its lock says: {', '.join(wrong)}", advice=f"see {log}"
        )
    _run([str(target / "bin" / "python"), "-c", lock.check], log, f"the check of the environment {lock.name}")
    return found


def _run(argv: Sequence[str], log: Path, what: str) -> None:
    try:
        proc.run(argv, log=log, what=what, timeout_s=CHECK_TIMEOUT_S)
    except proc.ProcessError as error:
        raise EnvError(error.message, advice=f"the whole log: {log}") from error


def _failed(what: str, argv: Sequence[str], code: int, log: Path) -> EnvError:
    error = proc.ProcessError(what, argv=argv, returncode=code, log=log)
    return EnvError(error.message, advice="check that pip reaches its package index, then run the same command again")


def _link(target: Path, place: Path) -> None:
    """Point `place` at `target` in one step. (A virtual environment cannot be moved: its scripts name its path.)"""
    beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    beside.symlink_to(target.relative_to(place.parent), target_is_directory=True)
    beside.replace(place)


def _sweep(name: str) -> None:
    """Remove builds of `name` that no link points to."""
    linked = {path.resolve() for path in root().glob(f"{name}-" + "?" * 12)}
    for left in (root() / "builds").glob(f"{name}-" + "?" * 12 + "-" + "?" * 8):
        if left.resolve() not in linked:
            shutil.rmtree(left, ignore_errors=True)  # what an orphaned pip still writes is swept next time


def _interpreter_for(lock: Lock) -> str:
    """A base interpreter of a version that the lock is for. Raises EnvError."""
    here = f"{sys.platform}-{platform.machine()}"
    if here not in lock.platforms:
        raise EnvError(
            f"the lock {lock.name} is for {', '.join(lock.platforms)}; this machine is {here}",
            advice="make an environment by hand and name its python in the recipe (`env: /path/to/python`)",
        )
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if own in lock.pythons:
        return sys.executable
    for wanted in lock.pythons:
        found = shutil.which(f"python{wanted}")
        if found and (proc.output([found, "-c", "import sys, venv; print(sys.version)"]) or "").startswith(wanted):
            return found
    raise EnvError(
        f"the lock {lock.name} needs Python {' or '.join(lock.pythons)}; qgate runs on {own} and none is on PATH",
        advice=f"install python{lock.pythons[0]} (with its venv module)",
    )


def _room_for(lock: Lock) -> None:
    place, free = room(root())
    if free < lock.size_bytes:
        raise EnvError(
            f"the environment {lock.name} takes {lock.size_bytes / 1e9:.1f} GB; {place} has {free / 1e9:.1f} GB left",
            advice="free some space, or set QGATE_HOME to a folder with more",
        )


@contextlib.contextmanager
def _held(name: str, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    with disk_errors(root()):
        root().mkdir(parents=True, exist_ok=True)
    with alone(root() / f".{name}.lock", on_wait):
        yield
