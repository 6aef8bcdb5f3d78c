"""Room on GPUs: who asks waits until there is some, who stays is kept room first, nobody waits on somebody who waits."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from qgate.errors import Interrupted, StartError
from qgate.io import proc
from qgate.rooms import berths as rooms
from qgate.rooms.berths import Berths, quantizing
from qgate.sizing.placement import Device, Need
from tests.processes import PATIENCE_S

GIB = 1 << 30


def gpu(index: int = 0, gib: float = 100) -> Device:
    return Device(index, "NVIDIA H200", int(gib * GIB), int(gib * GIB))


def need(name: str, gib: float, *, least: float = 0, kv: float = 0) -> Need:
    return Need(name, 1, int(gib * GIB), int(kv * GIB), int(least * GIB))


def test_no_more_is_given_than_there_is_whoever_comes() -> None:
    room, lock = Berths([gpu(), gpu(1)]), threading.Lock()
    now: dict[int, int] = {0: 0, 1: 0}
    most: list[int] = []
    full = threading.Barrier(4)  # two of 40 beside each other on each GPU, never three

    def serve(number: int) -> None:
        with room.hold(need(f"server {number}", 40)) as given:
            with lock:
                now[given.devices[0]] += given.size_bytes
                most.append(max(now.values()))
                is_early = len(most) <= 4
            if is_early:
                full.wait(PATIENCE_S)
            threading.Event().wait(0.002)
            with lock:
                now[given.devices[0]] -= given.size_bytes

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(serve, range(40)))
    assert max(most) == 80 * GIB
    assert set(now.values()) == {0}


def test_who_must_wait_is_told_once_and_then_served() -> None:
    room, told = Berths([gpu()]), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with room.hold(need("first", 60)):
            second = pool.submit(lambda: room.hold(need("second", 60), told.set).__enter__())
            assert told.wait(PATIENCE_S)
            assert not second.done()
        assert second.result(PATIENCE_S).devices == (0,)


def test_room_that_is_kept_is_never_given_away() -> None:
    room = Berths([gpu()])
    assert room.keep([need("baseline", 50), need("baseline at 4 requests", 20)], [need("awq", 20)])
    with room.hold(need("baseline", 50)) as one, room.hold(need("awq", 20)) as other:
        assert (one.size_bytes, other.size_bytes) == (50 * GIB, 20 * GIB)
    with pytest.raises(StartError, match=r"w8a8 needs 40\.0 GiB on a GPU at least; free on GPU 0: 27\.0 GiB") as error:
        room.hold(need("w8a8", 40)).__enter__()
    assert "tensor_parallel_size" in str(error.value.advice)


def test_nothing_is_kept_where_a_variant_would_never_fit_beside_it() -> None:
    room = Berths([gpu()])
    assert not room.keep([need("baseline", 60)], [need("awq", 20), need("w8a8", 50)])
    assert not room.keep([need("baseline", 60), need("baseline at 4 requests", 60)], [])
    with room.hold(need("w8a8", 90)):  # nothing was kept: all of it is there
        pass


def test_a_kv_cache_is_cut_only_where_it_could_never_be_had() -> None:
    room = Berths([gpu()])
    with room.hold(need("large", 50, kv=90, least=10)) as given:
        assert given.kv_bytes == gpu().usable_bytes - 50 * GIB


def test_who_waits_ends_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "POLL_S", 0.01)
    room = Berths([gpu()])
    with ThreadPoolExecutor(1) as pool, room.hold(need("first", 60)):
        waiting = pool.submit(lambda: room.hold(need("second", 60)).__enter__())
        proc.stop_all()
        try:
            with pytest.raises(Interrupted, match="second waited for room"):
                waiting.result(PATIENCE_S)
        finally:
            proc.stopped()


def test_quantizing_takes_the_first_gpu_and_what_there_can_be() -> None:
    with quantizing(None, "awq", 10 * GIB):
        pass
    room = Berths([gpu(0, 50), gpu(1, 100)])
    with quantizing(room, "awq", 10 * GIB) as given:
        assert given.devices == (0,)  # type: ignore[attr-defined]
        assert given.size_bytes == 32 * GIB  # type: ignore[attr-defined]
    with quantizing(room, "large", 100 * GIB) as given:
        assert given.size_bytes == room.most(0)  # type: ignore[attr-defined]
