import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub.errors import (
    GatedRepoError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import filter_repo_objects

from qgate.errors import CheckpointError
from qgate.io import hub
from qgate.io.files import sha256_file
from qgate.rooms.obtain import gguf_sha256, obtain_model, obtain_ready
from qgate.schemas.variant import GgufSource, HubSource, LocalSource
from tests.unit.tiny_checkpoint import write_checkpoint

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))


def test_a_directory_is_read_where_it_lies(tmp_path: Path) -> None:
    found = obtain_model(LocalSource(path=write_checkpoint(tmp_path / "m")), "baseline", precision="FP16")
    assert (found.name, found.path, found.precision) == ("baseline", tmp_path / "m", "FP16")
    assert found.source == {"path": str(tmp_path / "m")}


def said_to_be(folder: Path, bits: int) -> LocalSource:
    write_checkpoint(folder)
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": bits, "group_size": 128}
    (folder / "config.json").write_text(json.dumps(config))
    return LocalSource(path=folder)


def test_a_stated_precision_of_another_width_than_the_configs_is_refused(tmp_path: Path) -> None:
    four_bits = said_to_be(tmp_path / "four", 4)
    with pytest.raises(CheckpointError, match=r"calls v W8A8, but its config\.json says W4A16"):
        obtain_ready(four_bits, "v", "W8A8")
    assert [obtain_ready(four_bits, "v", stated).precision for stated in (None, "W4A16", "NVFP4", "home-made")] == [
        "W4A16", "W4A16", "NVFP4", "home-made",
    ]  # fmt: skip
    plain = LocalSource(path=write_checkpoint(tmp_path / "plain"))
    assert obtain_ready(plain, "v", "W8A8").precision == "W8A8"


def test_a_commit_in_the_cache_is_taken_without_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def download(repository: str, **how: Any) -> str:
        asked.append(how["local_files_only"])
        return str(write_checkpoint(tmp_path / COMMIT))

    monkeypatch.setattr(hub.hf, "snapshot_download", download)
    found = obtain_model(HubSource(hub="maker/model", revision=COMMIT), "baseline")
    assert asked == [True]
    assert found.source == {"hub": "maker/model", "revision": COMMIT, "commit": COMMIT}


def test_a_branch_is_resolved_to_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub.hf, "snapshot_download", lambda *_, **__: str(write_checkpoint(tmp_path / COMMIT)))
    assert obtain_model(HubSource(hub="maker/model", revision="main"), "x").source["commit"] == COMMIT


@pytest.mark.parametrize("name", ["consolidated.safetensors", "params.json", "original/consolidated.00.pth"])
def test_a_second_format_beside_the_plain_one_is_not_fetched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(repository: str, *, allow_patterns: list[str], ignore_patterns: list[str], **_: Any) -> str:
        names = ["config.json", "model-00001-of-00003.safetensors", "tokenizer.json", name]
        fetched = list(filter_repo_objects(names, allow_patterns=allow_patterns, ignore_patterns=ignore_patterns))
        assert fetched == names[:3]
        raise LocalEntryNotFoundError("seen")

    monkeypatch.setattr(hub.hf, "snapshot_download", download)
    with pytest.raises(CheckpointError, match="seen"):
        hub.snapshot("maker/model", "main")


@pytest.mark.parametrize("repository", ["-a/-b", "../.."])
def test_a_name_that_no_repository_can_have(repository: str) -> None:
    with pytest.raises(CheckpointError, match="is no repository of the hub: Repo id must use"):
        hub.snapshot(repository, "main")


def failing(error: Exception) -> Callable[..., str]:
    def download(*_: Any, **__: Any) -> str:
        raise error

    return download


def answered(kind: type[Any]) -> Exception:
    response = SimpleNamespace(headers={}, request=None)  # which HTTP library the hub's client uses changes
    error: Exception = kind("no", response=response)
    return error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (answered(RevisionNotFoundError), "maker/model has no revision"),
        (answered(GatedRepoError), "is gated"),
        (answered(RepositoryNotFoundError), "the hub has no repository maker/model"),
        (LocalEntryNotFoundError("Got: ConnectError\nmore"), "the hub cannot be asked: Got: ConnectError"),
        (OSError("disk gone"), "the hub cannot be asked: disk gone"),
    ],
)
@pytest.mark.parametrize("revision", [COMMIT, "v1"])
def test_every_failure_of_the_hub_is_one_clear_message(
    error: Exception, message: str, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub.hf, "snapshot_download", failing(error))
    with pytest.raises(CheckpointError) as caught:
        obtain_model(HubSource(hub="maker/model", revision=revision), "baseline")
    assert message in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.advice


def test_a_gguf_file_is_known_by_its_hash(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF and more")
    sha256 = sha256_file(file)
    assert gguf_sha256(GgufSource(gguf=file)) == sha256
    assert gguf_sha256(GgufSource(gguf=file, sha256=sha256)) == sha256
    with pytest.raises(CheckpointError, match="another file than the recipe's"):
        gguf_sha256(GgufSource(gguf=file, sha256="0" * 64))


def test_a_gguf_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no GGUF file at"):
        gguf_sha256(GgufSource(gguf=tmp_path / "absent.gguf"))
    (tmp_path / "m.gguf").write_bytes(b"PK")
    with pytest.raises(CheckpointError, match="is not a GGUF file"):
        gguf_sha256(GgufSource(gguf=tmp_path / "m.gguf"))
