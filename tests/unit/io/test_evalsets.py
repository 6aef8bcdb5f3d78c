"""Loading, verifying and locking sets: what is right is read, and no changed byte gets through."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from qgate.errors import EvalsetError
from qgate.io import evalsets
from qgate.io.evalset_stats import stats
from qgate.schemas.base import content_key
from qgate.schemas.recipe import EvalsetUse


def item(name: str = "a", **changes: Any) -> dict[str, Any]:
    value = {
        "id": name,
        "messages": [{"role": "user", "content": f"Say yes, {name}."}],
        "kind": "copy",
        "language": "en",
        "difficulty": 1,
        "scorer": {"name": "exact", "args": {"values": ["yes"]}},
    }
    return value | changes


def write(folder: Path, lines: bytes, **head: Any) -> Path:
    """A set's folder with these lines, locked."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "items.jsonl").write_bytes(lines)
    manifest = {"format": 1, "name": "own", "version": 1, "description": "d", "license": "Apache-2.0", "num_items": 1}
    files = {name: dict(pin) for name, pin in evalsets.pins(folder).items()}
    (folder / "evalset.yaml").write_text(yaml.safe_dump(manifest | {"files": files} | head), encoding="utf-8")
    return folder


def jsonl(*values: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


def refusal(folder: Path) -> str:
    with pytest.raises(EvalsetError) as caught:
        evalsets.load(EvalsetUse(name=folder.name), folder.parent)
    return f"{caught.value.message} | {caught.value.advice}"


def test_a_sound_set_is_loaded_from_a_path_relative_to_the_recipe(tmp_path: Path) -> None:
    write(tmp_path / "sets" / "mine", jsonl(item("a"), item("b")), num_items=2)
    loaded = evalsets.load(EvalsetUse(name="sets/mine"), tmp_path)
    assert [entry.id for entry in loaded.items] == ["a", "b"]
    assert (loaded.name, loaded.version) == ("own", 1)


def test_the_hash_is_over_the_hashes_of_the_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", jsonl(item()))
    pins = evalsets.pins(folder)
    expected = content_key({"items.jsonl": pins["items.jsonl"]["sha256"]})
    assert evalsets.load(EvalsetUse(name="mine"), tmp_path).sha256 == expected


@pytest.mark.parametrize("at", [0, 40, -2])
def test_a_changed_byte_is_refused_with_the_file_and_the_fix(tmp_path: Path, at: int) -> None:
    folder = write(tmp_path / "mine", jsonl(item()))
    data = bytearray((folder / "items.jsonl").read_bytes())
    data[at] ^= 1
    (folder / "items.jsonl").write_bytes(data)
    said = refusal(folder)
    assert f"{folder}/items.jsonl is not the file that own@1 is locked to" in said
    assert f"qgate evalset lock {folder}" in said


def test_other_line_ends_are_a_change(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", jsonl(item()))
    (folder / "items.jsonl").write_bytes((folder / "items.jsonl").read_bytes().replace(b"\n", b"\r\n"))
    assert "is not the file" in refusal(folder)


def test_every_changed_or_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "requests.jsonl").write_text("{}\n", encoding="utf-8")
    folder = write(tmp_path / "mine", jsonl(item()))
    (folder / "requests.jsonl").unlink()
    (folder / "items.jsonl").write_bytes(jsonl(item("b")))
    said = refusal(folder)
    assert "items.jsonl is not the file" in said
    assert "requests.jsonl is missing" in said


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (b"", "holds no item"),
        (b"\n  \n", "holds no item"),
        (jsonl(item("a"), item("a")), "items.jsonl:2: the id 'a' is already used in line 1"),
        (jsonl(item("a")) + b'{"id": "b", \xff}\n', "items.jsonl:2: not UTF-8 (byte 13 of the line)"),
        (jsonl(item("a")) + b'{"id": "b",\n', "items.jsonl:2: Invalid JSON"),
        (jsonl(item("a", difficulty=9)), "items.jsonl:1: difficulty:"),
        (jsonl(item("a", langauge="en")), "items.jsonl:1: langauge: Extra inputs are not permitted"),
        (jsonl(item("a"), item("b", twin_of="c")), "items.jsonl:2: `twin_of` names 'c'"),
        (jsonl(item("a"), item("b", twin_of="a"), item("c", twin_of="b")), "items.jsonl:3: `twin_of` names 'b'"),
        (jsonl(item("a", messages=[{"role": "assistant", "content": "x"}])), "items.jsonl:1: the last message"),
        (jsonl(item("a"), item("a") | {"id": "b"}), "items.jsonl:2: it asks what line 1 asks"),
        (
            jsonl(item("a", messages=[{"role": "tool", "content": "x"}])),
            "role: Input should be 'system', 'user' or 'assistant' |",
        ),
        (b"\xef\xbb\xbf" + jsonl(item("a")), "items.jsonl:1:"),
        (jsonl(item("a", difficulty=True)), "items.jsonl:1: difficulty: Input should be a valid integer"),
    ],
)
def test_faulty_lines_are_refused_by_number(tmp_path: Path, lines: bytes, expected: str) -> None:
    assert expected in refusal(write(tmp_path / "mine", lines))


@pytest.mark.parametrize("again", ["Say yes, a. ", "Say  yes,\na.", "Say yes, a\u200b.", "\ufeffSay yes, a."])
def test_blanks_and_invisible_characters_make_no_prompt_another_one(tmp_path: Path, again: str) -> None:
    """A hundred items that differ by blanks alone would be a hundred pieces of evidence."""
    same = item("b", messages=[{"role": "user", "content": again}])
    assert "items.jsonl:2: it asks what line 1 asks" in refusal(write(tmp_path / "mine", jsonl(item("a"), same)))
    write(tmp_path / "twins", jsonl(item("a"), same | {"twin_of": "a"}), num_items=2)
    assert len(evalsets.load(EvalsetUse(name="twins"), tmp_path).items) == 2


def test_line_separators_inside_a_text_end_no_line(tmp_path: Path) -> None:
    odd = "a\u2028b\u2029c\x85d\x0be"
    write(tmp_path / "mine", jsonl(item("a", messages=[{"role": "user", "content": odd}])))
    assert evalsets.load(EvalsetUse(name="mine"), tmp_path).items[0].messages[0].content == odd


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- 1\n", "is not a mapping"),
        ("a: [\n", "line 2: not valid YAML"),
        ("format: 1\nformat: 1\n", "line 2: `format` stands here and on line 1"),
        ("format: 1\n", "name: Field required"),
        ("format: 2\n", "format: Input should be 1"),
    ],
)
def test_a_faulty_manifest_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    folder = write(tmp_path / "mine", jsonl(item()))
    (folder / "evalset.yaml").write_text(text, encoding="utf-8")
    assert expected in refusal(folder)


def test_a_pin_outside_the_folder_is_refused(tmp_path: Path) -> None:
    pins = {
        "../other.jsonl": {"sha256": "0" * 64, "size_bytes": 1},
        "items.jsonl": {"sha256": "0" * 64, "size_bytes": 1},
    }
    assert "outside the set's folder" in refusal(write(tmp_path / "mine", jsonl(item()), files=pins))


def test_a_wrong_count_is_refused(tmp_path: Path) -> None:
    assert "has 1 item, but evalset.yaml says 7" in refusal(write(tmp_path / "mine", jsonl(item()), num_items=7))


def test_lock_raises_the_version_when_a_byte_changed_and_only_then(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", jsonl(item()))
    before = (folder / "evalset.yaml").read_bytes()
    assert evalsets.lock(folder).version == 1
    assert (folder / "evalset.yaml").read_bytes() == before
    (folder / "items.jsonl").write_bytes(jsonl(item(), item("b")))
    locked = evalsets.lock(folder)
    assert (locked.version, locked.num_items) == (2, 2)
    assert evalsets.verify(folder) == locked
    (folder / "items.jsonl").write_bytes(jsonl(item("c")))
    assert evalsets.lock(folder, keep_version=True).version == 2


def test_lock_completes_a_manifest_written_by_hand(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", jsonl(item(), item("b")))
    text = "format: 1\nname: own\nversion: 3\ndescription: d\nlicense: Apache-2.0\n"
    (folder / "evalset.yaml").write_text(text, encoding="utf-8")
    assert evalsets.lock(folder).version == 3
    assert len(evalsets.load(EvalsetUse(name="mine"), tmp_path).items) == 2


def test_lock_refuses_faulty_items_and_leaves_the_manifest(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", jsonl(item()))
    before = (folder / "evalset.yaml").read_bytes()
    (folder / "items.jsonl").write_bytes(b"{}\n")
    with pytest.raises(EvalsetError):
        evalsets.lock(folder)
    assert (folder / "evalset.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("long-txt@1", "did you mean 'long-text@1'?"),
        ("long-text@99", "this qgate ships long-text@1, not long-text@99"),
        ("long-text", "did you mean 'long-text@1'?"),
        ("nowhere/at/all", "does not exist"),
        (".", "has no evalset.yaml"),
    ],
)
def test_an_unknown_name_gets_the_near_one(tmp_path: Path, name: str, expected: str) -> None:
    with pytest.raises(EvalsetError) as caught:
        evalsets.load(EvalsetUse(name=name), tmp_path)
    assert expected in f"{caught.value.message} {caught.value.advice}"


def test_an_installed_wheel_brings_its_own_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "_data" / "evalsets" / "own", jsonl(item()))
    monkeypatch.setattr("qgate.io.shipped.PACKAGE", tmp_path)
    assert [manifest.name for manifest in evalsets.available()] == ["own"]
    assert evalsets.load(EvalsetUse(name="own@1"), Path("/")).items[0].id == "a"


def test_all_shipped_sets_load_within_seconds() -> None:
    began = time.process_time()
    names = [f"{manifest.name}@{manifest.version}" for manifest in evalsets.available()]
    loaded = [evalsets.load(EvalsetUse(name=name), Path("/")) for name in names]
    assert time.process_time() - began < 5  # a fifth of a second on an idle machine
    assert {entry.name for entry in loaded} == {"instruction", "long-text", "noisy-text"}


def test_stats_count_every_item_once_per_slice() -> None:
    loaded = evalsets.load(EvalsetUse(name="noisy-text@1"), Path("/"))
    found = stats(loaded)
    assert found.num_items == len(loaded.items)
    for key in ("kind", "language", "difficulty", "scorer", "severity"):
        assert sum(found.counts[key].values()) == found.num_items
    least, middle, most = found.prompt_chars
    assert 0 < least <= middle <= most
