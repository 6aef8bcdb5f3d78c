"""SHA-256 of large files: a path in, a hash out, computed once per inode, size and times. Touches the disk."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from qgate.errors import StoreError
from qgate.io.files import read_object, sha256_file, write_text
from qgate.io.home import home
from qgate.schemas.checkpoint import FileRecord

MAX_ENTRIES = 20_000
NUM_THREADS = 4
_HERE: dict[Path, list[int | str]] = {}
"""What this process has seen, by path: a home that cannot be written keeps nothing, and network file systems in user space
give a file another inode whenever the kernel has forgotten it."""


def records(files: Iterable[Path]) -> dict[Path, FileRecord]:
    """Hash and size of each file. A remembered hash counts only for the same inode, or path, and size, mtime and ctime.

    The ctime is what neither `touch -r` nor an unpacked archive can set back.
    """
    cache = home() / "cache" / "sha256.json"
    files = list(files)
    known = read_object(cache) if files else {}
    found: dict[Path, FileRecord] = {}
    fresh: dict[str, list[int | str]] = {}
    for file in files:
        stat = file.stat()
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
        name = f"{stat.st_dev}:{stat.st_ino}"  # what is hashed before it is moved into place keeps its hash
        path = file.absolute()
        entry = next((each for each in (_HERE.get(path), known.get(name)) if each and each[:3] == stamp), None)
        if entry is None:
            entry = fresh[name] = [*stamp, sha256_file(file)]
        _HERE[path] = entry
        found[file] = FileRecord(sha256=str(entry[3]), size_bytes=stat.st_size)
    if fresh:
        merged = dict(list({**read_object(cache), **fresh}.items())[-MAX_ENTRIES:])
        with contextlib.suppress(StoreError):  # a cache: without it the files are hashed again
            write_text(cache, json.dumps(merged, indent=0))
    return found


def afresh(files: Iterable[Path]) -> dict[Path, FileRecord]:
    """Hash and size of each file as it is now, whatever is remembered."""
    files = list(files)
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        found = pool.map(lambda file: FileRecord(sha256=sha256_file(file), size_bytes=file.stat().st_size), files)
        return dict(zip(files, found, strict=True))
