"""Whole-file writes: all or nothing, and disk faults with the fix."""

import os
from pathlib import Path

import pytest

from qgate.errors import StoreError
from qgate.io import files


def test_written_whole(tmp_path: Path) -> None:
    files.write_text(tmp_path / "deep/er/x", "ä\n")
    assert (tmp_path / "deep/er/x").read_bytes() == "ä\n".encode()
    assert [p.name for p in (tmp_path / "deep/er").iterdir()] == ["x"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write_text(tmp_path / "x", "old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="no space left"):
        files.write_text(tmp_path / "x", "new")
    assert (tmp_path / "x").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_path_that_something_stands_in_the_way_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    monkeypatch.chdir(tmp_path)
    for path in (Path(), tmp_path, tmp_path / "file" / "x", tmp_path / "file" / "deep" / "x", tmp_path / "link" / "x"):
        with pytest.raises(StoreError, match="cannot write"):
            files.write_text(path, "new")


def test_hash(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert files.sha256_file(tmp_path / "x").startswith("ba7816bf8f01cfea")
