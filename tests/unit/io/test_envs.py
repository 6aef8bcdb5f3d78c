"""Environments, built for real from a lock of one tiny wheel: once whole, once killed in the middle."""

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qgate.errors import EnvError, UserError
from qgate.io import env_build, envs, locks
from qgate.ports import Tool

LOCK = f"""\
# description: a tiny tool
# python: {sys.version_info.major}.{sys.version_info.minor}
# platform: linux-x86_64, linux-aarch64, darwin-arm64
# first: tiny-tool
# check: {{check}}
tiny_tool==1.0
"""
SLOW_CHECK = (
    "import os, pathlib, time, tiny_tool; "
    "reached = os.environ.get('TINY_WAIT'); reached and (pathlib.Path(reached).touch(), time.sleep(600))"
)
BUILD = "from tests.unit.io.test_envs import Silent; from qgate.io import env_build; env_build.build('tiny', Silent())"


class Silent:
    """A watcher that remembers what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.details: list[str] = []
        self.done = 0

    @contextmanager
    def task(self, label: str, total: int | None, done: int = 0) -> Iterator["Silent"]:
        yield self

    def advance(self, num: int = 1) -> None:
        self.done += num

    def detail(self, text: str) -> None:
        self.details.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)


def write_lock(home: Path, name: str, check: str) -> None:
    (home / "locks").mkdir(parents=True, exist_ok=True)
    (home / "locks" / f"{name}.txt").write_text(LOCK.format(check=check))


def write_wheel(folder: Path) -> None:
    """A pure Python wheel, made by hand."""
    folder.mkdir(parents=True)
    info = "tiny_tool-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_tool-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_tool.py", "ANSWER = 42\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-tool\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", f"tiny_tool.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


def made_home(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A home with the tiny tool's lock, and pip looking for wheels there and nowhere else."""
    write_wheel(folder / "wheels")
    write_lock(folder, "tiny", SLOW_CHECK)
    patch.setenv("QGATE_HOME", str(folder))
    patch.setenv("PIP_CONFIG_FILE", os.devnull)
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(folder / "wheels"))
    patch.delenv("PYTHONPATH", raising=False)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Shared: a test that changes anything of the tiny tool's puts it back, or has a home of its own."""
    with pytest.MonkeyPatch.context() as patch:
        yield made_home(tmp_path_factory.mktemp("home"), patch)


@pytest.fixture(scope="module")
def tool(home: Path) -> Tool:
    return env_build.build("tiny", Silent())


def kill_in_check(reached: Path) -> None:
    """Start a build, and kill it while its check runs."""
    root = Path(__file__).parents[3]
    builder = subprocess.Popen(
        [sys.executable, "-c", BUILD], cwd=root, env={**os.environ, "TINY_WAIT": str(reached), "PYTHONPATH": str(root)}
    )
    while not reached.exists():
        assert builder.poll() is None, "the build ended before its check"
        time.sleep(0.05)
    builder.send_signal(signal.SIGKILL)
    builder.wait()


def test_a_killed_build_leaves_nothing_that_is_taken_and_the_next_sweeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds = made_home(tmp_path / "home", monkeypatch) / "envs" / "builds"
    kill_in_check(tmp_path / "reached")
    (killed,) = builds.iterdir()
    assert envs.status("tiny").state == "missing"
    with pytest.raises(EnvError, match="is not built") as caught:
        envs.resolve("tiny")
    assert caught.value.advice == "qgate env build tiny"
    assert env_build.build("tiny", Silent()) == envs.resolve("tiny")
    assert not killed.exists()
    assert len(list(builds.iterdir())) == 1


def test_a_built_environment_runs_its_tool(tool: Tool) -> None:
    said = subprocess.run(
        [tool.python, "-c", "import tiny_tool; print(tiny_tool.ANSWER)"], capture_output=True, check=True
    )
    assert said.stdout == b"42\n"
    assert envs.packages(tool, ["tiny_tool", "absent"]) == {"tiny_tool": "1.0"}
    assert envs.status("tiny").ready


def test_a_second_build_finds_it_done(tool: Tool) -> None:
    watcher = Silent()
    assert env_build.build("tiny", watcher) == tool
    assert watcher.details == []


def test_resolving_spawns_nothing(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.Popen", None)
    assert envs.resolve("tiny") == tool


def test_a_package_changed_afterwards_is_noticed(tool: Tool) -> None:
    info = envs.site_of(tool.python.parent.parent) / "tiny_tool-1.0.dist-info"
    other = info.with_name("tiny_tool-1.1.dist-info")
    info.rename(other)
    try:
        with pytest.raises(EnvError, match=r"was changed after it was built \(tiny-tool\)"):
            envs.resolve("tiny")
    finally:
        other.rename(info)
    assert envs.resolve("tiny") == tool


def test_another_lock_of_that_name_asks_for_a_new_build(tool: Tool, home: Path) -> None:
    write_lock(home, "tiny", "import tiny_tool  # newer")
    try:
        with pytest.raises(EnvError, match="was built from an older lock"):
            envs.resolve("tiny")
    finally:
        write_lock(home, "tiny", SLOW_CHECK)
    assert envs.resolve("tiny") == tool


def test_a_python_by_path_is_asked_once(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tool.python.parent / "python3"
    by_path = envs.resolve(str(link))
    assert by_path.python == link
    assert envs.packages(by_path, ["tiny-tool"]) == {"tiny-tool": "1.0"}
    monkeypatch.setattr("qgate.io.proc.output", None)
    assert envs.resolve(str(link)) == by_path


def test_pythonpath_is_part_of_the_identity(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny_tool-2.0.dist-info").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    overlaid = envs.resolve("tiny")
    assert overlaid.identity != tool.identity
    assert envs.packages(overlaid, ["tiny-tool"]) == {"tiny-tool": "2.0"}


def test_current_is_this_python() -> None:
    assert envs.resolve("current").python == Path(sys.executable)
    assert envs.resolve("current").identity == envs.resolve("current").identity
    assert "pydantic" in envs.packages(envs.resolve("current"), ["pydantic"])


@pytest.mark.parametrize("variable", ["QGATE_PYTHON_DUO", "QGATE_PYTHON_DUO_CPU"])
def test_a_tool_with_a_lock_per_machine_takes_the_user_s_python_by_either_name(
    variable: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("duo-cpu", "duo-cuda"):
        write_lock(home, name, "pass")
    monkeypatch.setattr(locks, "NVIDIA_DRIVER", ())
    with pytest.raises(EnvError, match="'duo-cpu' is not built"):
        envs.resolve("duo")
    monkeypatch.setenv(variable, sys.executable)
    assert envs.resolve("duo").python == Path(sys.executable)


@pytest.mark.parametrize("spec", ["/no/such/python", "./nothing"])
def test_a_path_that_is_no_python_is_refused(spec: str) -> None:
    with pytest.raises(EnvError, match="no python at"):
        envs.resolve(spec)


def test_a_failed_check_is_an_error_and_nothing_is_linked(home: Path) -> None:
    write_lock(home, "broken", "import tiny_tool, not_there")
    with pytest.raises(EnvError, match="not_there"):
        env_build.build("broken", Silent())
    assert envs.status("broken").state == "missing"
    assert env_build.remove("broken") == 0
    assert not list((home / "envs" / "builds").glob("broken-*"))


def test_a_machine_that_the_lock_is_not_for_is_refused_before_any_work(home: Path) -> None:
    text = LOCK.format(check="pass")
    (home / "locks" / "elsewhere.txt").write_text(
        text.replace("linux-x86_64, linux-aarch64, darwin-arm64", "plan9-68000")
    )
    with pytest.raises(EnvError, match="is for plan9-68000"):
        env_build.build("elsewhere", Silent())
    (home / "locks" / "older.txt").write_text(
        LOCK.replace(f"# python: 3.{sys.version_info.minor}", "# python: 2.6").format(check="pass")
    )
    with pytest.raises(EnvError, match=r"needs Python 2\.6"):
        env_build.build("older", Silent())


def test_no_room_is_said_before_any_work(home: Path) -> None:
    (home / "locks" / "huge.txt").write_text("# size_mb: 999999999\n" + LOCK.format(check="pass"))
    with pytest.raises(EnvError, match=r"takes 1000000\.0 GB"):
        env_build.build("huge", Silent())


def test_removing_takes_the_link_and_the_build(
    tool: Tool, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = shutil.copytree(home, tmp_path / "home", symlinks=True)
    monkeypatch.setenv("QGATE_HOME", str(own))
    assert envs.status("tiny").ready
    assert env_build.remove("tiny") == 1
    assert envs.status("tiny").state == "missing"
    assert not list((own / "envs" / "builds").glob("tiny-*"))
    assert locks.find("tiny").name == "tiny"


def test_what_a_lock_that_is_gone_left_is_removed_by_its_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path))
    (tmp_path / "envs" / "builds" / "gone").mkdir(parents=True)
    left = tmp_path / "envs" / "gone-0123456789ab"
    left.symlink_to("builds/gone", target_is_directory=True)
    for name in ("gon", "../envs/gone", "g*", "vlm"):
        with pytest.raises(UserError, match="no environment named"):
            env_build.remove(name)
    assert left.is_symlink()
    assert env_build.remove("gone") == 1
    assert not left.is_symlink()
