"""The machine as a run describes it: CPU limits of containers, both versions of cgroups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qgate.io import host

ALL = 64


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root of cgroups in which nothing is limited, on a machine of many cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(ALL)))
    monkeypatch.setattr(host, "CGROUPS", tmp_path)
    monkeypatch.setattr(host, "OWN_CGROUPS", tmp_path / "own")
    return tmp_path


def cgroup(root: Path, own: str, **files: str) -> None:
    """What the kernel shows of a process: `own` lines, and files by their path with `__` for `/`."""
    (root / "own").write_text(own)
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(path.name.replace("-", ".")).write_text(text + "\n")


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/\n", {}, ALL),
        ("0::/\n", {"cpu-max": "max 100000"}, ALL),
        ("0::/\n", {"cpu-max": "400000 100000"}, 4),
        ("0::/\n", {"cpu-max": "150000 100000"}, 2),
        ("0::/\n", {"cpu-max": "10000 100000"}, 1),
        ("0::/\n", {"cpu-max": "9900000 100000"}, ALL),
        ("0::/a/b\n", {"a__cpu-max": "300000 100000", "a__b__cpu-max": "max 100000"}, 3),
        ("0::/a/b\n", {"a__cpu-max": "800000 100000", "a__b__cpu-max": "200000 100000"}, 2),
        ("0::/a\n", {"b__cpu-max": "200000 100000"}, ALL),
        ("0::/kubepods/pod1\n", {"cpu-max": "600000 100000"}, 6),
        ("0::/../..\n", {"cpu-max": "600000 100000"}, 6),
        (
            "4:memory:/x\n2:cpu,cpuacct:/docker/1\n1:name=systemd:/x\n",
            {"cpu,cpuacct__cpu-cfs_quota_us": "500000", "cpu,cpuacct__cpu-cfs_period_us": "100000"},
            5,
        ),
        ("1:cpu:/\n0::/\n", {"cpu__cpu-cfs_quota_us": "-1", "cpu__cpu-cfs_period_us": "100000"}, ALL),
        ("", {}, ALL),
    ],
)
def test_cores_are_no_more_than_the_container_may_use(
    machine: Path, own: str, files: dict[str, str], cores: int
) -> None:
    cgroup(machine, own, **files)
    assert host.num_cores() == cores


def test_a_machine_without_cgroups_has_the_cores_of_its_affinity(machine: Path) -> None:
    assert host.num_cores() == ALL
    assert host.describe()["num_cores"] == ALL
