"""Files: written whole or not at all, read, hashed, locked. Touches the disk."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from qgate.errors import StoreError

POLL_S = 0.2
NO_WRITING = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EFBIG, errno.ENAMETOOLONG, errno.EIO)
NO_PLACE = (errno.EEXIST, errno.EISDIR, errno.ENOENT, errno.EBUSY)
"""Errors where a file, a folder or a dangling link lies in the way of a path that is to be made."""


@contextlib.contextmanager
def disk_errors(path: Path, *more: int) -> Iterator[None]:
    """Turns an OSError of a write at `path` into a StoreError with the fix in it; `more`: further error numbers."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StoreError(
                f"no space left while writing {path}",
                advice="free some space and run the same command: it goes on there",
            ) from error
        if error.errno in {*NO_WRITING, *more}:
            raise StoreError(
                f"cannot write {path}: {error.strerror}",
                advice="choose a place that can be written to (--results, --out)",
            ) from error
        raise


def room(folder: Path) -> tuple[Path, int]:
    """`folder`, or the nearest above it that exists, and the bytes that are free there."""
    place = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    return place, shutil.disk_usage(place).free


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` whole or not at all: beside the target, fsync, then moved into place. Raises StoreError."""
    with disk_errors(path, *NO_PLACE):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, whole or not at all. Raises StoreError."""
    write_bytes(path, text.encode())


def read_object(path: Path) -> dict[str, Any]:
    """The object in a file of JSON; empty where there is none that can be read, for what a cache held is made anew."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


@contextlib.contextmanager
def alone(lock: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock that one process has at a time. `on_wait` is called once where another has it. Raises StoreError."""
    held = FileLock(lock)
    try:
        with disk_errors(lock, *NO_PLACE):
            held.acquire(timeout=0)
    except Timeout:
        on_wait()
        held.acquire(poll_interval=POLL_S)
    try:
        yield
    finally:
        held.release()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file as 64 hex digits, read in chunks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_files(paths: Iterable[Path]) -> str:
    """SHA-256 of the files' hashes, in their order."""
    return hashlib.sha256("".join(map(sha256_file, paths)).encode()).hexdigest()
