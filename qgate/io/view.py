"""A checkpoint and a few other files in, a folder that looks like it with these in it out. Touches the disk.

Every other file is a link to the original, which is never written to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from qgate.io import checkpoint
from qgate.io.files import disk_errors, write_bytes
from qgate.schemas.checkpoint import Checkpoint, FileRecord


def read_files(folder: Path, names: Iterable[str]) -> dict[str, bytes]:
    """The content of those of `names` that are there. Raises OSError."""
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}


def view(original: Checkpoint, changed: Mapping[str, bytes | None], folder: Path) -> Checkpoint:
    """`original` with `changed` files in it (None: without that file), laid out in the empty `folder`. Raises StoreError."""
    with disk_errors(folder):
        for source in checkpoint.files(original.path):
            relative = source.relative_to(original.path)
            if str(relative) not in changed:
                link = folder / relative
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(source.resolve())
    kept = {name: record for name, record in original.files.items() if name not in changed}
    for name, data in changed.items():
        if data is not None:
            write_bytes(folder / name, data)
            kept[name] = FileRecord(sha256=sha256(data).hexdigest(), size_bytes=len(data))
    return original.model_copy(update={"path": folder, "files": kept})
