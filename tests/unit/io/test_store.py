"""The store: made once, whole or not at all, resumable, safe for two runs at once."""

import threading
from pathlib import Path

import pytest

from qgate.errors import StoreError
from qgate.io.store import Store


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


@pytest.mark.parametrize("damage", ["shorter", "missing", "marker"])
def test_damaged_objects_are_made_again(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    folder = store.obtain("k", "ab", write_one)
    if damage == "shorter":
        (folder / "x").write_text("")
    elif damage == "missing":
        (folder / "x").unlink()
    else:
        (folder / "object.json").write_text("{")
    assert store.find("k", "ab") is None
    assert folder.is_dir(), "whoever looks takes nothing away that another process may be replacing"
    assert (store.obtain("k", "ab", write_one) / "x").read_text() == "1"


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
        assert go_on.wait(10)
        write_one(folder)

    first = threading.Thread(target=lambda: Store(tmp_path).obtain("k", "ab", slow))
    first.start()
    assert began.wait(10)

    def on_wait() -> None:
        waited.append(True)
        go_on.set()

    Store(tmp_path).obtain("k", "ab", slow, on_wait=on_wait)
    first.join(10)
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
