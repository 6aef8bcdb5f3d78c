"""Evaluation sets on disk: a recipe's use of one in, a verified Evalset out. Touches the disk.

A set is a folder with evalset.yaml, which pins the bytes of items.jsonl and of every other data file by SHA-256. The
shipped sets lie in evalsets/ of a checkout, or in qgate/_data/evalsets of an installed wheel. Nothing that is read
from a set whose bytes differ from their pins is ever returned. Names of scorers are left to the caller.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

import yaml
from pydantic import ValidationError

from qgate.errors import EvalsetError, RecipeError
from qgate.io import evalset_items, yaml_tree
from qgate.io.evalset_cut import cut
from qgate.io.files import sha256_file, write_text
from qgate.io.shipped import shipped_folder
from qgate.schemas.base import content_key
from qgate.schemas.evalset import EVALSET_FORMAT, Evalset, EvalsetManifest
from qgate.schemas.recipe import EvalsetUse
from qgate.wording import counted, near_or_known

MANIFEST = "evalset.yaml"
ITEMS = "items.jsonl"
VALID = "`qgate evalset new` writes a valid one"
SHIPPED_NAME = re.compile(r"(?P<name>[a-z0-9][a-z0-9-]*)@(?P<version>[0-9]+)")


def load(use: EvalsetUse, base: Path) -> Evalset:
    """The set that `use` names, verified and cut as it asks; a path is relative to `base`. Raises EvalsetError."""
    folder = resolve(use.name, base)
    manifest = verify(folder)
    items = evalset_items.parse(_read(folder / ITEMS), str(folder / ITEMS))
    if len(items) != manifest.num_items:
        raise EvalsetError(
            f"{folder / ITEMS} has {counted(len(items), 'item')}, but {MANIFEST} says {manifest.num_items}",
            advice=f"run `qgate evalset lock {folder}`",
        )
    return Evalset(name=manifest.name, version=manifest.version, sha256=set_hash(manifest), items=cut(items, use))


def set_hash(manifest: EvalsetManifest) -> str:
    """What `name@version` is locked to: the content key of the manifest's file hashes."""
    return content_key({path: pin.sha256 for path, pin in manifest.files.items()})


def shipped_root() -> Path:
    """Folder of the sets that come with qgate."""
    return shipped_folder("evalsets")


def available() -> tuple[EvalsetManifest, ...]:
    """The manifests of the shipped sets, by name. Raises EvalsetError where one is unreadable."""
    return tuple(read_manifest(path.parent) for path in sorted(shipped_root().glob(f"*/{MANIFEST}")))


def resolve(name: str, base: Path) -> Path:
    """Folder of `long-text@1`, or of a path relative to `base`. Raises EvalsetError."""
    if (match := SHIPPED_NAME.fullmatch(name)) is not None:
        return _resolve_shipped(match["name"], int(match["version"]))
    folder = base / name
    if (folder / MANIFEST).is_file():
        return folder
    known = [manifest.full_name for manifest in available()]
    what = f"has no {MANIFEST}" if folder.is_dir() else "does not exist"
    advice = near_or_known(name, known, "shipped sets")
    raise EvalsetError(f"evaluation set {name!r}: the folder {folder} {what}", advice=advice)


def _resolve_shipped(name: str, version: int) -> Path:
    shipped = {manifest.name: manifest for manifest in available()}
    if name not in shipped:
        known = [manifest.full_name for manifest in shipped.values()]
        advice = near_or_known(f"{name}@{version}", known, "shipped sets")
        raise EvalsetError(f"no evaluation set named {name!r} is shipped", advice=advice)
    if shipped[name].version != version:
        raise EvalsetError(
            f"this qgate ships {shipped[name].full_name}, not {name}@{version}",
            advice=f"write {shipped[name].full_name} (its results do not compare with version {version}), "
            "or install the qgate that ships the other",
        )
    return shipped_root() / name


def read_manifest(folder: Path) -> EvalsetManifest:
    """evalset.yaml of `folder`, validated; the files it pins are not looked at. Raises EvalsetError."""
    manifest = _manifest(folder, _mapping(folder))
    strays = [name for name in manifest.files if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts]
    if strays:
        raise EvalsetError(f"{folder / MANIFEST} pins {strays[0]!r}, which is outside the set's folder")
    if ITEMS not in manifest.files:
        raise EvalsetError(f"{folder / MANIFEST} does not pin {ITEMS}", advice=f"run `qgate evalset lock {folder}`")
    return manifest


def _mapping(folder: Path) -> dict[str, Any]:
    """evalset.yaml as a mapping."""
    path = folder / MANIFEST
    try:
        value = yaml_tree.parse(_read(path), str(path)).value
    except RecipeError as error:
        raise EvalsetError(error.message, advice=VALID) from error
    if not isinstance(value, dict):
        raise EvalsetError(f"{path} is not a mapping", advice=VALID)
    return value


def _manifest(folder: Path, value: dict[str, Any]) -> EvalsetManifest:
    try:
        return EvalsetManifest.model_validate(value, strict=True)
    except ValidationError as error:
        raise EvalsetError(f"{folder / MANIFEST}: {evalset_items.describe(error)}", advice=VALID) from error


def verify(folder: Path) -> EvalsetManifest:
    """The manifest of `folder`, once every file it pins has the very bytes. Raises EvalsetError naming those that differ."""
    manifest = read_manifest(folder)
    faults = []
    for name, pin in sorted(manifest.files.items()):
        path = folder / name
        if not path.is_file():
            faults.append(f"{path} is missing")
        elif path.stat().st_size != pin.size_bytes or sha256_file(path) != pin.sha256:
            faults.append(f"{path} is not the file that {manifest.full_name} is locked to")
    if faults:
        raise EvalsetError(
            "\n".join(faults),
            advice=f"restore it (`git checkout -- {folder}`), or, if the change is meant, give the set a new version "
            f"with `qgate evalset lock {folder}`",
        )
    return manifest


def lock(folder: Path, *, keep_version: bool = False) -> EvalsetManifest:
    """Pin the bytes of `folder` as they are and return the manifest written. Raises EvalsetError.

    Where a pinned byte changed, the version rises by one, because results of the old items do not compare with the
    new; `keep_version` is for a set that nobody has used yet. Where nothing changed, nothing is written. A manifest
    that somebody wrote by hand may leave out `files` and `num_items`.
    """
    old = _mapping(folder)
    items = evalset_items.parse(_read(folder / ITEMS), str(folder / ITEMS))
    new = _manifest(folder, old | {"files": pins(folder), "num_items": len(items)})
    if new.model_dump(exclude_none=True) == old:
        return new
    if "files" in old and not keep_version:
        new = new.model_copy(update={"version": new.version + 1})
    write_manifest(folder, new)
    return new


def pins(folder: Path) -> dict[str, dict[str, Any]]:
    """Hash and size of every data file (*.jsonl) under `folder`, by POSIX path relative to it."""
    return {
        path.relative_to(folder).as_posix(): {"sha256": sha256_file(path), "size_bytes": path.stat().st_size}
        for path in sorted(folder.rglob("*.jsonl"))
    }


def write_manifest(folder: Path, manifest: EvalsetManifest) -> None:
    """Write evalset.yaml, whole or not at all. Raises StoreError."""
    assert manifest.format == EVALSET_FORMAT
    value = manifest.model_dump(exclude_none=True)
    text = yaml.dump(value, Dumper=yaml_tree.Dumper, sort_keys=False, allow_unicode=True, width=120)
    write_text(folder / MANIFEST, text)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        advice = "name the folder of a set; `qgate evalset new` makes one"
        raise EvalsetError(f"cannot read {path}: {error.strerror}", advice=advice) from error
