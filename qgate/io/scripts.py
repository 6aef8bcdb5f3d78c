"""A worker script in, one hash of all its code out: its own, and of the modules beside it that it imports. Reads the disk."""

from __future__ import annotations

import ast
from pathlib import Path

from qgate.io.files import sha256_file, sha256_files


def sha256(worker: Path) -> str:
    """The file's hash where it stands alone, else one over the hashes of the files that belong to it."""
    own, *beside = files(worker)
    if not beside:
        return sha256_file(own)
    return sha256_files((own, *beside))


def files(worker: Path) -> tuple[Path, ...]:
    """The script, and then in order of their names the modules of its folder that it imports, directly or not."""
    found = {worker}
    waiting = [worker]
    while waiting:
        for name in _imported(waiting.pop()):
            module = worker.with_name(f"{name}.py")
            if module not in found and module.is_file():
                found.add(module)
                waiting.append(module)
    return worker, *sorted(found - {worker})


def _imported(file: Path) -> set[str]:
    """First parts of all names that the file imports absolutely."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}
