import errno
import itertools
import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.errors import CheckpointError
from qgate.io import checkpoint, hashes, tensors
from qgate.io.survey import survey
from tests.unit.tiny_checkpoint import PLAIN, Entries, write_checkpoint, write_safetensors, write_sharded


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))


def refusal(folder: Path) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        checkpoint.read(folder, "baseline")
    assert caught.value.advice, "a refusal says the fix"
    return caught.value


def test_a_plain_checkpoint_is_counted_and_hashed(tmp_path: Path) -> None:
    found = checkpoint.read(write_checkpoint(tmp_path / "m"), "baseline")
    assert found.num_parameters == 10 * 96 + 96 * 96 + 96 * 160 + 96
    assert found.weight_bytes == 2 * found.num_parameters
    assert (found.precision, found.bits_per_weight) == ("FP16", 16.0)
    assert found.files.keys() == {"config.json", "model.safetensors", "tokenizer.json"}


def test_mistrals_own_form_of_a_model_is_no_second_weight_file(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    alone = checkpoint.read(folder, "baseline")
    write_safetensors(folder / "consolidated.safetensors", {"layers.0.attention.wq.weight": ("BF16", (4, 4))})
    beside = checkpoint.read(folder, "baseline")
    assert beside.num_parameters == alone.num_parameters
    assert "consolidated.safetensors" in beside.files, "it is a part of the checkpoint all the same"
    (folder / "model.safetensors").unlink()
    assert checkpoint.read(folder, "baseline").num_parameters == 16


def test_the_digest_is_of_the_bytes_not_of_the_place(tmp_path: Path) -> None:
    first = checkpoint.read(write_checkpoint(tmp_path / "a"), "baseline")
    second = checkpoint.read(write_checkpoint(tmp_path / "b"), "other")
    assert first.digest == second.digest
    (tmp_path / "b" / "tokenizer.json").write_text("{ }")
    assert checkpoint.read(tmp_path / "b", "other").digest != first.digest


def test_the_model_card_is_not_part_of_it(tmp_path: Path) -> None:
    """It is written after the verdict, and no engine reads it; a README further down might be read."""
    folder = write_checkpoint(tmp_path / "model")
    before = checkpoint.read(folder, "m").digest
    (folder / "README.md").write_text("# A model", encoding="utf-8")
    assert checkpoint.read(folder, "m").digest == before
    (folder / "docs").mkdir()
    (folder / "docs" / "README.md").write_text("# More", encoding="utf-8")
    assert checkpoint.read(folder, "m").digest != before


def test_hidden_bookkeeping_is_not_part_of_it(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    before = checkpoint.read(folder, "x").digest
    (folder / ".cache").mkdir()
    (folder / ".cache" / "download.lock").write_text("")
    assert checkpoint.read(folder, "x").digest == before


def test_a_file_is_hashed_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_checkpoint(tmp_path / "m")
    before = checkpoint.read(folder, "x")
    hashed: list[Path] = []
    original = hashes.sha256_file
    monkeypatch.setattr(hashes, "sha256_file", lambda path: hashed.append(path) or original(path))
    assert checkpoint.read(folder, "x") == before
    assert hashed == []
    same_size = (folder / "tokenizer.json").read_bytes()[::-1]
    (folder / "tokenizer.json").write_bytes(same_size)
    os.utime(folder / "tokenizer.json", ns=(1, 1))
    assert checkpoint.read(folder, "x").digest != before.digest
    assert hashed == [folder / "tokenizer.json"]


def test_an_unreadable_hash_cache_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_checkpoint(tmp_path / "m")
    before = checkpoint.read(folder, "x")
    monkeypatch.setattr(hashes, "_HERE", {})
    (tmp_path / "home" / "cache" / "sha256.json").write_text("not json")
    assert checkpoint.read(folder, "x") == before


def test_a_home_that_cannot_be_written_does_not_hash_the_weights_at_every_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "file" / "home"))
    found = checkpoint.read(write_checkpoint(tmp_path / "m"), "x")
    monkeypatch.setattr(hashes, "sha256_file", lambda path: pytest.fail(f"{path} was hashed again"))
    assert checkpoint.changed(found) is None


class Moved:
    """What the kernel says of a file, but for its inode."""

    def __init__(self, stat: os.stat_result, inode: int) -> None:
        self._stat = stat
        self.st_ino = inode

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stat, name)


def test_a_file_system_that_gives_another_inode_at_each_look_has_nothing_hashed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = checkpoint.read(write_checkpoint(tmp_path / "m"), "x")
    inodes, stat = itertools.count(1), Path.stat
    monkeypatch.setattr(Path, "stat", lambda path, **how: Moved(stat(path, **how), next(inodes)))
    monkeypatch.setattr(hashes, "sha256_file", lambda path: pytest.fail(f"{path} was hashed again"))
    assert checkpoint.changed(found) is None


def test_no_such_directory(tmp_path: Path) -> None:
    assert "no checkpoint directory" in refusal(tmp_path / "absent").message


def test_no_config(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    (folder / "config.json").unlink()
    assert "has no config.json" in refusal(folder).message


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"architectures": []}', "{broken"])
def test_a_config_that_says_nothing(tmp_path: Path, text: str) -> None:
    folder = write_checkpoint(tmp_path / "m")
    (folder / "config.json").write_text(text)
    assert "config.json" in refusal(folder).message


def test_a_config_may_hold_infinity_as_transformers_writes_it(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    config = json.loads((folder / "config.json").read_text()) | {"time_step_limit": [0.0, float("inf")]}
    (folder / "config.json").write_text(json.dumps(config))
    assert checkpoint.read_config(folder) == survey(folder).facts.config == config


def test_a_folder_that_cannot_be_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_checkpoint(tmp_path / "m")
    (folder / "secret").mkdir()
    scandir = os.scandir

    def closed(path: str) -> Any:
        if Path(path).name == "secret":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert "secret cannot be read: Permission denied" in refusal(folder).message


def test_pickles_only(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "pickles only" in refusal(folder).message


def test_a_gguf_in_a_directory_is_pointed_at(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    (folder / "model.safetensors").rename(folder / "model.gguf")
    assert "gguf: FILE" in str(refusal(folder).advice)


def test_no_weights(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    assert "no *.safetensors" in refusal(folder).message


@given(cut=st.integers(min_value=0, max_value=52_000))
def test_a_truncated_file_is_never_taken(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    file = tmp_path_factory.getbasetemp() / "cut.safetensors"
    write_safetensors(file, PLAIN)
    whole = file.read_bytes()
    file.write_bytes(whole[: min(cut, len(whole) - 1)])
    with pytest.raises(CheckpointError):
        tensors.header(file)


def test_a_file_longer_than_its_header_says(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    with (folder / "model.safetensors").open("ab") as stream:
        stream.write(b"\0")
    assert "longer than its header says" in refusal(folder).message


def test_a_header_that_lies_about_sizes(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "m")
    raw = json.dumps({"a": {"dtype": "F16", "shape": [3], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(4))
    assert "takes 4 bytes" in refusal(folder).message


HALVES: dict[str, Entries] = {
    "model-00001-of-00002.safetensors": {"a.weight": ("BF16", (4, 4))},
    "model-00002-of-00002.safetensors": {"b.weight": ("BF16", (4,))},
}


def test_shards_add_up(tmp_path: Path) -> None:
    found = checkpoint.read(write_sharded(tmp_path / "m", HALVES), "x")
    assert (found.num_parameters, found.precision) == (20, "BF16")


def test_a_hidden_shard_is_none(tmp_path: Path) -> None:
    """Hidden files are not hashed, so weights in one could be swapped after they were judged."""
    shards = {name.replace("model-00002", ".model-00002"): entries for name, entries in HALVES.items()}
    assert "lacks 1 of 2 weight files" in refusal(write_sharded(tmp_path / "m", shards)).message


def test_a_shard_that_did_not_arrive(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "m", HALVES)
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert "lacks 1 of 2 weight files" in refusal(folder).message


def test_shards_without_an_index(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "m", HALVES)
    (folder / "model.safetensors.index.json").unlink()
    assert "no model.safetensors.index.json" in refusal(folder).message


def test_an_index_that_names_a_tensor_that_is_not_there(tmp_path: Path) -> None:
    mapping = {"a.weight": "model-00001-of-00002.safetensors", "b.weight": "model-00001-of-00002.safetensors"}
    folder = write_sharded(tmp_path / "m", HALVES, mapping)
    assert "names 1 tensors that are not where it says: b.weight" in refusal(folder).message


def test_a_tensor_that_the_index_does_not_name(tmp_path: Path) -> None:
    shards = {**HALVES, "model-00001-of-00002.safetensors": {"a.weight": ("BF16", (4, 4)), "c.weight": ("BF16", (4,))}}
    mapping = {"a.weight": "model-00001-of-00002.safetensors", "b.weight": "model-00002-of-00002.safetensors"}
    folder = write_sharded(tmp_path / "m", shards, mapping)
    assert "does not name: c.weight" in refusal(folder).message


@pytest.mark.parametrize("text", ["", "{}", '{"weight_map": []}'])
def test_an_index_that_is_none(tmp_path: Path, text: str) -> None:
    folder = write_sharded(tmp_path / "m", HALVES)
    (folder / "model.safetensors.index.json").write_text(text)
    assert "not an index" in refusal(folder).message


def test_what_changed_since_it_was_hashed_is_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "model", PLAIN)
    found = checkpoint.read(tmp_path / "model", "model")
    assert checkpoint.changed(found) is None
    (tmp_path / "model" / "README.md").write_text("a card")
    assert checkpoint.changed(found) is None
    (tmp_path / "model" / "added.json").write_text("{}")
    assert checkpoint.changed(found) == "added.json"
    (tmp_path / "model" / "added.json").unlink()
    (tmp_path / "model" / "config.json").unlink()
    assert checkpoint.changed(found) == "config.json"
    (tmp_path / "model").rename(tmp_path / "gone")
    assert checkpoint.changed(found) is not None
