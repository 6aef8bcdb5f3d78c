"""Berths: nobody is given more than there is, what fits is placed, what never fits is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qgate.sizing.placement import Device, Need, berth, fitted, place, take

GIB = 1 << 30


def device(index: int, free_gib: float, total_gib: float = 80) -> Device:
    return Device(index, "NVIDIA H100", int(total_gib * GIB), int(free_gib * GIB))


def need(name: str, gib: float, *, num_devices: int = 1, kv_gib: float = 0, only: tuple[int, ...] = ()) -> Need:
    return Need(name, num_devices, int(gib * GIB), int(kv_gib * GIB), int(kv_gib * GIB / 4), only)


DEVICES = st.lists(st.floats(0, 80), max_size=5).map(lambda free: [device(i, gib) for i, gib in enumerate(free)])
NEEDS = st.lists(
    st.tuples(st.floats(0.1, 90), st.floats(0, 60), st.integers(1, 4), st.booleans()), max_size=8
).map(
    lambda rows: [
        need(f"server-{i}", gib, kv_gib=kv, num_devices=num, only=(0,) if pinned and num == 1 else ())
        for i, (gib, kv, num, pinned) in enumerate(rows)
    ]
)  # fmt: skip


@given(DEVICES, NEEDS)
def test_no_gpu_is_given_away_twice(devices: list[Device], needs: list[Need]) -> None:
    given_away: dict[int, int] = {}
    for placed in place(devices, needs).berths.values():
        take(given_away, placed)
    assert all(given_away.get(one.index, 0) <= one.usable_bytes for one in devices)


@given(DEVICES, NEEDS)
def test_everybody_is_placed_waits_or_is_impossible(devices: list[Device], needs: list[Need]) -> None:
    found = place(devices, needs)
    names = [*found.berths, *found.waiting, *found.impossible]
    assert sorted(names) == sorted(one.name for one in needs)
    assert set(found.impossible) == {one.name for one in needs if fitted(devices, one) is None}


@given(DEVICES, NEEDS)
def test_a_berth_is_as_many_gpus_as_asked_for_each_once(devices: list[Device], needs: list[Need]) -> None:
    wanted = {one.name: one for one in needs}
    for name, placed in place(devices, needs).berths.items():
        assert len(set(placed.devices)) == len(placed.devices) == wanted[name].num_devices
        assert set(placed.devices) <= {one.index for one in devices}
        assert not wanted[name].only or set(placed.devices) <= set(wanted[name].only)
        assert wanted[name].least_kv_bytes <= placed.kv_bytes <= wanted[name].kv_bytes
        assert 0 < placed.share <= 1


@given(DEVICES, NEEDS)
def test_who_waits_fits_once_the_others_are_gone(devices: list[Device], needs: list[Need]) -> None:
    wanted = {one.name: one for one in needs}
    for name in place(devices, needs).waiting:
        alone = fitted(devices, wanted[name])
        assert alone is not None
        assert berth(devices, {}, alone) is not None


@given(DEVICES, NEEDS)
def test_giving_back_what_was_taken_leaves_nothing(devices: list[Device], needs: list[Need]) -> None:
    taken: dict[int, int] = {}
    berths = place(devices, needs).berths.values()
    for placed in berths:
        take(taken, placed)
    for placed in berths:
        take(taken, placed, back=True)
    assert not any(taken.values())


def test_servers_spread_over_gpus_before_they_share() -> None:
    found = place([device(0, 80), device(1, 80)], [need("baseline", 20), need("w8a8", 20), need("awq", 20)])
    assert [found.berths[name].devices for name in ("baseline", "w8a8", "awq")] == [(0,), (1,), (0,)]


def test_four_small_servers_share_one_gpu() -> None:
    found = place([device(0, 139, 141)], [need(f"server-{i}", 20, kv_gib=10) for i in range(4)])
    assert len(found.berths) == 4
    assert not found.waiting


def test_tensor_parallel_servers_take_several() -> None:
    found = place([device(i, 80) for i in range(4)], [need("a", 60, num_devices=2), need("b", 60, num_devices=2)])
    assert {found.berths["a"].devices, found.berths["b"].devices} == {(0, 1), (2, 3)}
    assert place([device(0, 80)], [need("a", 10, num_devices=2)]).impossible == ("a",)


def test_a_kv_cache_that_does_not_fit_whole_is_cut_to_what_is_left() -> None:
    cut = fitted([device(0, 24, 24)], need("big", 16, kv_gib=20))
    assert cut is not None
    assert cut.total_bytes == device(0, 24, 24).usable_bytes
    assert fitted([device(0, 20, 24)], need("big", 16, kv_gib=20)) is None


def test_a_server_that_the_recipe_pins_stays_there() -> None:
    devices = [device(0, 80), device(1, 80)]
    assert place(devices, [need("a", 10, only=(1,))]).berths["a"].devices == (1,)
    assert place(devices, [need("a", 10, only=(7,))]).impossible == ("a",)
