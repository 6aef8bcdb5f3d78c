"""The store: made once, whole or not at all, resumable, safe for two runs at once."""

import os
import threading
from pathlib import Path

import pytest

from qgate.errors import StoreError
from qgate.io.files import sha256_file
from qgate.io.store import Store
from tests.processes import PATIENCE_S


def write_one(folder: Path) -> None:
    (folder / "x").write_text("1")


def test_made_once(tmp_path: Path) -> None:
    calls: list[Path] = []
    store = Store(tmp_path)

    def make(folder: Path) -> None:
        calls.append(folder)
        write_one(folder)

    first, second = store.obtain("k", "ab", make), store.obtain("k", "ab", make)
    assert first == second == tmp_path / "objects/k/ab"
    assert len(calls) == 1
    assert store.find("k", "ab") == first


def test_failure_leaves_nothing_complete(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def fail(folder: Path) -> None:
        write_one(folder)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.obtain("k", "ab", fail)
    assert store.find("k", "ab") is None


@pytest.mark.parametrize(("resumable", "seen"), [(True, ["x"]), (False, [])])
def test_what_an_interrupted_make_left(tmp_path: Path, resumable: bool, seen: list[str]) -> None:
    store = Store(tmp_path)
    part = tmp_path / "objects/k/ab.part"
    part.mkdir(parents=True)
    write_one(part)
    found: list[str] = []

    def make(folder: Path) -> None:
        found.extend(p.name for p in folder.iterdir())
        write_one(folder)

    store.obtain("k", "ab", make, resumable=resumable)
    assert found == seen


@pytest.mark.parametrize("damage", ["shorter", "edited", "missing", "marker", "empty marker"])
def test_damaged_objects_are_made_again(tmp_path: Path, damage: str) -> None:
    told: list[str] = []
    store = Store(tmp_path, told.append)
    folder = store.obtain("k", "ab", write_one)
    if damage == "shorter":
        (folder / "x").write_text("")
    elif damage == "edited":
        (folder / "x").write_text("2")
    elif damage == "missing":
        (folder / "x").unlink()
    else:
        (folder / "object.json").write_text("{" if damage == "marker" else '{"files": {}}')
    assert store.find("k", "ab") is None
    assert folder.is_dir(), "whoever looks takes nothing away that another process may be replacing"
    assert not told, "nor does it say what nobody may be about to mend"
    assert (store.obtain("k", "ab", write_one) / "x").read_text() == "1"
    assert [text.partition(" is damaged")[0] for text in told] == [str(folder)]
    assert [text.partition(" is damaged")[0] for text in store.notes] == ["objects/k/ab"]
    assert store.obtain("k", "ab", write_one) == folder
    assert len(told) == 1, "once it is mended there is nothing to say"


def test_large_files_are_hashed_once_and_again_when_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("qgate.io.store.AFRESH_BYTES", 0)
    hashed: list[str] = []
    monkeypatch.setattr("qgate.io.hashes.sha256_file", lambda path: hashed.append(path.name) or sha256_file(path))
    store = Store(tmp_path)
    folder = store.obtain("k", "ab", write_one)
    assert store.find("k", "ab") == folder
    assert hashed == ["x"], "what was hashed while it was made is remembered where it lies now"
    times = (folder / "x").stat()
    while (
        folder / "x"
    ).stat().st_ctime_ns == times.st_ctime_ns:  # a fast machine writes twice in one tick of its clock
        (folder / "x").write_text("2")
        os.utime(folder / "x", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert store.find("k", "ab") is None


def test_an_object_of_an_earlier_qgate_has_sizes_alone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = store.obtain("k", "ab", write_one)
    (folder / "object.json").write_text('{"files": {"x": 1}}')
    assert store.find("k", "ab") == folder
    (folder / "object.json").write_text('{"files": {"x": 2}}')
    assert store.find("k", "ab") is None


def test_a_file_where_objects_should_lie(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects/k").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        Store(tmp_path).obtain("k", "ab", write_one)


def test_nothing_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing was written"):
        Store(tmp_path).obtain("k", "ab", lambda folder: None)


def test_two_at_once_make_it_once(tmp_path: Path) -> None:
    began, go_on = threading.Event(), threading.Event()
    calls: list[str] = []
    waited: list[bool] = []

    def slow(folder: Path) -> None:
        calls.append("slow")
        began.set()
        assert go_on.wait(PATIENCE_S)
        write_one(folder)

    first = threading.Thread(target=lambda: Store(tmp_path).obtain("k", "ab", slow))
    first.start()
    assert began.wait(PATIENCE_S)

    def on_wait() -> None:
        waited.append(True)
        go_on.set()

    Store(tmp_path).obtain("k", "ab", slow, on_wait=on_wait)
    first.join()
    assert calls == ["slow"]
    assert waited == [True]


def test_full_disk(tmp_path: Path) -> None:
    def full(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="no space left") as caught:
        Store(tmp_path).obtain("k", "ab", full)
    assert "goes on there" in (caught.value.advice or "")


def test_read_only_results(tmp_path: Path) -> None:
    def refused(folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(StoreError, match="cannot write"):
        Store(tmp_path).obtain("k", "ab", refused)
