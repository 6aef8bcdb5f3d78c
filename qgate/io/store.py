"""The store: a content key in, a finished folder out, made at most once. Touches the disk.

    objects/<kind>/<key>/          complete; object.json lists its files, their sizes and hashes
    objects/<kind>/<key>.part/     being made, or left by an interrupted run that the next one goes on from
    objects/<kind>/<key>.lock      held while it is made: a second run waits, and finds it finished

An object whose files are missing or other bytes than were written counts as none and is made again, which is told.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from qgate.errors import StoreError
from qgate.io import hashes
from qgate.io.files import NO_PLACE, alone, disk_errors, write_text
from qgate.schemas.checkpoint import FileRecord

MARKER = "object.json"
AFRESH_BYTES = 64 << 20
"""Files up to here (answers, scores, verdicts) are hashed at every look; an unchanged larger one (weights) is
remembered."""


class Store:
    """A results folder's objects."""

    def __init__(self, root: Path, tell: Callable[[str], None] = lambda text: None) -> None:
        """`root`: the results folder; made on first write. `tell` is called with every note, with the whole path."""
        self.root = root
        self.notes: list[str] = []
        """What a reader of the run must know: each damaged object that was made again."""
        self._tell = tell
        self.objects = root / "objects"

    def folder(self, kind: str, key: str) -> Path:
        """Where the object lies or will lie."""
        return self.objects / kind / key

    def find(self, kind: str, key: str) -> Path | None:
        """The complete object's folder, or None."""
        folder = self.folder(kind, key)
        return folder if _is_whole(folder) else None

    def obtain(
        self,
        kind: str,
        key: str,
        make: Callable[[Path], None],
        *,
        resumable: bool = False,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Path:
        """The object's folder, made by `make(folder)` unless it is there. Raises StoreError and what `make` raises.

        `resumable`: what an interrupted `make` left is handed to the next; otherwise it starts from an empty folder.
        `on_wait` is called once when another process is making the same object.
        """
        if (found := self.find(kind, key)) is not None:
            return found
        final = self.folder(kind, key)
        with disk_errors(final, *NO_PLACE):
            final.parent.mkdir(parents=True, exist_ok=True)
        with alone(final.with_suffix(".lock"), on_wait):
            if (found := self.find(kind, key)) is not None:
                return found
            part = final.with_suffix(".part")
            if final.exists():
                self._note_damage(final)
            with disk_errors(part):
                for left in (final,) if resumable else (final, part):
                    if left.exists():
                        shutil.rmtree(left)
                part.mkdir(exist_ok=True)
                make(part)
                _finish(part, final)
            return final

    def _note_damage(self, folder: Path) -> None:
        said = "is damaged, its files are not those that were written: it is made again"
        self.notes.append(f"{folder.relative_to(self.root)} {said}")
        self._tell(f"{folder} {said}")


def _finish(part: Path, final: Path) -> None:
    files = {str(path.relative_to(part)): path for path in sorted(part.rglob("*")) if path.is_file()}
    files.pop(MARKER, None)
    if not files:
        raise StoreError(f"nothing was written for {final}")
    found = {name: record.model_dump() for name, record in _records(files).items()}
    write_text(part / MARKER, json.dumps({"files": found}, indent=1) + "\n")
    part.replace(final)


def _is_whole(folder: Path) -> bool:
    try:
        said = json.loads((folder / MARKER).read_text(encoding="utf-8"))["files"]
        files = {name: folder / name for name in said}
        # an earlier qgate wrote sizes alone
        sizes = {name: each if isinstance(each, int) else each["size_bytes"] for name, each in said.items()}
        if not files or any(path.stat().st_size != sizes[name] for name, path in files.items()):
            return False
        wanted = {name: each["sha256"] for name, each in said.items() if not isinstance(each, int)}
        found = _records({name: files[name] for name in wanted})
        return all(record.sha256 == wanted[name] for name, record in found.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _records(files: Mapping[str, Path]) -> dict[str, FileRecord]:
    large = {path for path in files.values() if path.stat().st_size > AFRESH_BYTES}
    found = hashes.records(large) | hashes.afresh(set(files.values()) - large)
    return {name: found[path] for name, path in files.items()}
