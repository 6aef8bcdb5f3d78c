"""Two runs on one machine do not give the same memory of a GPU away; a run that has ended holds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from qgate.io.files import write_text
from qgate.io.leases import FILE, Leases
from qgate.rooms.berths import Berths
from qgate.sizing.placement import Device, Need
from tests.processes import PATIENCE_S

GIB = 1 << 30
GPU = Device(0, "NVIDIA H200", 100 * GIB, 100 * GIB)


def need(gib: float, name: str = "a server") -> Need:
    return Need(name, 1, int(gib * GIB))


def test_what_one_run_gave_the_other_does_not(tmp_path: Path) -> None:
    one, other = Berths([GPU], Leases(tmp_path)), Berths([GPU], Leases(tmp_path))
    told = threading.Event()
    held = other.hold(need(50), told.set)
    with ThreadPoolExecutor(1) as pool:
        with one.hold(need(60)):
            waiting = pool.submit(held.__enter__)
            assert told.wait(PATIENCE_S)
            with other.hold(need(30)):
                pass
            assert not waiting.done()
        assert waiting.result(PATIENCE_S).size_bytes == 50 * GIB
    assert Leases(tmp_path).others() == {0: 50 * GIB}
    held.__exit__(None, None, None)
    assert Leases(tmp_path).others() == {}


def test_room_that_is_kept_is_told_too(tmp_path: Path) -> None:
    one = Berths([GPU], Leases(tmp_path))
    assert one.keep([need(70, "baseline")], [need(20)])
    assert Leases(tmp_path).others() == {0: 70 * GIB}
    assert not Berths([GPU], Leases(tmp_path)).keep([need(70, "baseline")], [])
    one.close()
    assert Leases(tmp_path).others() == {}


def test_a_run_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from qgate.io.leases import Leases; found = Leases(pathlib.Path(sys.argv[1]));"
        f"found.tell({{0: {70 * GIB}}}); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert str(70 * GIB) in (tmp_path / FILE).read_text()
    assert Leases(tmp_path).others() == {}


def test_what_has_not_changed_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr("qgate.io.leases.write_text", lambda path, text: (written.append(text), write_text(path, text)))
    mine = Leases(tmp_path)
    for given in ({0: 5}, {0: 5}, {0: 6}, {}, {}):
        mine.tell(given)
    assert len(written) == 3


def test_a_file_that_is_damaged_is_begun_anew(tmp_path: Path) -> None:
    mine = Leases(tmp_path)
    (tmp_path / FILE).write_text("{")
    assert mine.others() == {}
    mine.tell({0: 5})
    assert list(json.loads((tmp_path / FILE).read_text()).values()) == [{"0": 5}]
