"""A run's evidence against the checkpoint as it is now: every way to tamper is refused in words of its own."""

import errno
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from qgate.errors import ArtefactError, CheckpointError, ExitCode, Refused, UserError
from qgate.io import envelope, hashes, signing
from qgate.judge.promotion import Demand, Weighed, weigh
from qgate.rooms.verify import Verified, verify
from tests.unit.promoted import Promoted, key_pair

NOW = datetime.now(UTC)
CHAT = Demand(tiers=("chat",))


@pytest.fixture
def run(promoted: Promoted) -> Promoted:
    return promoted


def refusal(run: Promoted, demand: Demand = CHAT, checkpoint: Path | None = None, **more: Any) -> str:
    with pytest.raises(Refused) as caught:
        verify(checkpoint or run.good, run.evidence, demand, more.pop("now", NOW), **more)
    assert caught.value.exit_code is ExitCode.FAIL
    return caught.value.message


def test_the_judged_bytes_pass(run: Promoted) -> None:
    found = verify(run.good, run.evidence, CHAT, NOW)
    assert found.variant == "good"
    assert "UNSIGNED" in found.signature


def test_the_baseline_is_judged_too(run: Promoted) -> None:
    assert verify(run.folder / "model", run.evidence, Demand(("judge",)), NOW).variant == "baseline"


def test_the_model_card_and_hidden_files_are_not_what_is_judged(run: Promoted) -> None:
    (run.good / "README.md").write_text("# A model", encoding="utf-8")
    (run.good / ".cache").mkdir()
    (run.good / ".cache" / "lock").touch()
    assert verify(run.good, run.evidence, CHAT, NOW).variant == "good"


def _change_a_byte(folder: Path) -> None:
    """Also where size, time and inode stay what they were."""
    weights = folder / "model.safetensors"
    before = weights.stat()
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))


def _add_a_file(folder: Path) -> None:
    (folder / "modeling_llama.py").write_text("raise SystemExit", encoding="utf-8")


def _truncate_the_shard(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])


TAMPERINGS: dict[str, tuple[Callable[[Path], object], str]] = {
    "changed byte": (_change_a_byte, "model.safetensors was changed"),
    "added file": (_add_a_file, "modeling_llama.py was added"),
    "missing file": (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
    "swapped tokenizer": (lambda folder: (folder / "tokenizer.json").write_text("{}"), "tokenizer.json was swapped"),
    "truncated shard": (_truncate_the_shard, "model.safetensors is truncated: "),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_tampered_checkpoint(run: Promoted, name: str) -> None:
    verify(run.good, run.evidence, CHAT, NOW)
    tamper, message = TAMPERINGS[name]
    tamper(run.good)
    said = refusal(run)
    assert message in said
    assert said.count("\n  - ") == 1  # that, and nothing else


def test_another_checkpoint(run: Promoted) -> None:
    for path in (run.good).iterdir():
        path.write_bytes(path.read_bytes() + b" ")
    assert "it is another checkpoint's evidence" in refusal(run)


def test_an_empty_checkpoint(run: Promoted, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no file of this checkpoint" in refusal(run, checkpoint=tmp_path / "empty")


def test_no_checkpoint(run: Promoted, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        verify(tmp_path / "nowhere", run.evidence, CHAT, NOW)


def test_a_file_that_cannot_be_read(run: Promoted, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> str:
        raise OSError(errno.EIO, "Input/output error", str(path))

    monkeypatch.setattr(hashes, "sha256_file", broken)
    with pytest.raises(CheckpointError, match="Input/output error"):
        verify(run.good, run.evidence, CHAT, NOW)


def test_another_variant_of_the_same_run_failed(run: Promoted) -> None:
    said = refusal(run, checkpoint=run.bad)
    assert "bad did not pass for the tier 'chat': FAIL" in said


def test_another_tier(run: Promoted) -> None:
    assert "does not speak of the tier 'public'" in refusal(run, Demand(("public",)))
    assert "the tier 'batch' does not allow good" in refusal(run, Demand(("chat", "batch")))


def test_no_tier(run: Promoted) -> None:
    assert "no tier was named" in refusal(run, Demand(()))


def test_age(run: Promoted) -> None:
    month, minutes = (Demand(("chat",), max_age=age) for age in (timedelta(days=30), timedelta(minutes=10)))
    assert verify(run.good, run.evidence, month, NOW + timedelta(days=29)).variant == "good"
    said = refusal(run, month, now=NOW + timedelta(days=45, hours=1))
    assert "too old: 45 days, and at most 30 days" in said
    finished = datetime.fromisoformat(json.loads(run.evidence.read_text())["predicate"]["finished_at"])
    assert "too old: 15 minutes, and" in refusal(run, minutes, now=finished + timedelta(minutes=15))
    assert "dated in the future" in refusal(run, now=NOW - timedelta(days=1))


def test_required_sets(run: Promoted) -> None:
    assert verify(run.good, run.evidence, Demand(("chat",), ("tiny@1",)), NOW).variant == "good"
    assert "evaluation set tiny@2, only on tiny@1" in refusal(run, Demand(("chat",), ("tiny@2",)))
    run.edit(lambda value: value["predicate"]["evalsets"]["tiny@1"].update(num_items=40))
    assert "40 of the 150 items of tiny@1 only" in refusal(run, Demand(("chat",), ("tiny@1",)))


def sign(run: Promoted, private: Path) -> Promoted:
    signed, _ = signing.sign(envelope.read(run.evidence), private)
    run.evidence.write_text(json.dumps(signed), encoding="utf-8")
    return run


def test_signed_evidence(run: Promoted, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    sign(run, private)
    assert verify(run.good, run.evidence, CHAT, NOW, public).signature.startswith("signed with ")
    assert "not checked" in verify(run.good, run.evidence, CHAT, NOW).signature


def test_every_signature_is_tried(run: Promoted, tmp_path: Path) -> None:
    pairs = [key_pair(tmp_path, name) for name in ("one", "two")]
    for private, _ in pairs:
        sign(run, private)
    for _, public in pairs:
        assert verify(run.good, run.evidence, CHAT, NOW, public).variant == "good"


def test_a_signature_without_key_id_in_a_sigstore_bundle(run: Promoted, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    sign(run, private)
    run.edit(lambda value: value["signatures"][0].pop("keyid"))
    bundle = {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": _json(run.evidence)}
    run.evidence.write_text(json.dumps(bundle), encoding="utf-8")
    assert verify(run.good, run.evidence, CHAT, NOW, public).variant == "good"


def test_an_edited_verdict(run: Promoted, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    sign(run, private)
    whole = _json(run.evidence)
    edited = envelope.read(run.evidence).payload.replace(b'"FAIL"', b'"PASS"')
    assert edited != envelope.read(run.evidence).payload
    other, _ = signing.sign(envelope.Evidence(envelope.read(run.evidence).statement, edited), private)
    run.evidence.write_text(json.dumps(whole | {"payload": other["payload"]}), encoding="utf-8")
    assert "it was edited after it was signed" in refusal(run, checkpoint=run.bad, signer=public)


def test_another_key(run: Promoted, tmp_path: Path) -> None:
    sign(run, key_pair(tmp_path)[0])
    assert "or signed by others" in refusal(run, signer=key_pair(tmp_path, "other")[1])


def test_a_signature_of_something_else(run: Promoted, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    bare = envelope.read(run.evidence)
    signed, _ = signing.sign(envelope.Evidence(bare.statement, bare.payload, "text/plain"), private)
    run.evidence.write_text(json.dumps(signed), encoding="utf-8")
    assert "what was signed is a text/plain" in refusal(run, signer=public)


def test_unsigned_where_a_key_is_asked_for(run: Promoted, tmp_path: Path) -> None:
    assert "is not signed: anybody may have edited it" in refusal(run, signer=key_pair(tmp_path)[1])


@pytest.mark.parametrize("content", [b"", b"no PEM", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_no_key(run: Promoted, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    for key in (tmp_path / "key", tmp_path / "nowhere"):
        with pytest.raises(UserError):
            verify(run.good, run.evidence, CHAT, NOW, key)
        with pytest.raises(UserError):
            signing.sign(envelope.read(run.evidence), key)


UNREADABLE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another kind": (lambda value: value.update(predicateType="https://slsa.dev/provenance/v1"), "of another kind"),
    "no statement": (lambda value: value.update(_type="https://in-toto.io/Link/v1"), "no in-toto statement"),
    "no subjects": (lambda value: value.update(subject=[]), "damaged: subject"),
    "unknown verdict": (
        lambda value: value["predicate"]["tiers"]["chat"].update(verdict="GREAT"),
        "damaged: predicate.tiers.chat.verdict",
    ),
    "a time without zone": (lambda value: value["predicate"].update(finished_at="2026-01-01T00:00:00"), "finished_at"),
    "broken base64": (lambda value: value.update(payload="%%%", signatures=[]), "envelope"),
    "no signatures": (lambda value: value.update(payload="e30="), "envelope"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_evidence_that_cannot_be_read(run: Promoted, name: str) -> None:
    change, message = UNREADABLE[name]
    run.edit(change)
    with pytest.raises(ArtefactError, match=message) as caught:
        verify(run.good, run.evidence, CHAT, NOW)
    assert caught.value.exit_code is ExitCode.USER_ERROR


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"a": 1}', b"{}{}"])
def test_what_is_no_evidence(run: Promoted, content: bytes) -> None:
    run.evidence.write_bytes(content)
    with pytest.raises(ArtefactError):
        verify(run.good, run.evidence, CHAT, NOW)
    run.evidence.unlink()
    with pytest.raises(ArtefactError, match="cannot read"):
        verify(run.good, run.evidence, CHAT, NOW)


def test_of_equal_bytes_the_variant_that_passed_counts(run: Promoted) -> None:
    """The same checkpoint as two variants, e.g. with other engine arguments: what passed is what may be promoted."""

    def twice(value: dict[str, Any]) -> None:
        predicate = value["predicate"]
        predicate["variants"] = {"again": predicate["variants"]["good"]} | predicate["variants"]
        predicate["tiers"]["chat"]["variants"]["again"] = predicate["tiers"]["chat"]["variants"]["bad"]
        mine = [subject for subject in value["subject"] if subject["name"].startswith("good/")]
        value["subject"] += [subject | {"name": subject["name"].replace("good/", "again/")} for subject in mine]

    run.edit(twice)
    found: Verified = verify(run.good, run.evidence, CHAT, NOW)
    assert found.variant == "good"


def test_version_1_stays_readable() -> None:
    """A statement that an earlier qgate wrote (tests/golden), which must be judged the same for ever."""
    golden = Path(__file__).parents[2] / "golden" / "evidence" / "v1.intoto.json"
    statement = envelope.read(golden).statement
    then = statement.predicate.finished_at
    assert statement.model_dump(mode="json") == _json(golden)
    assert weigh(statement, statement.files("good"), CHAT, then) == Weighed("good", ())
    (reason,) = weigh(statement, statement.files("bad"), CHAT, then).refusals
    assert reason.startswith("bad did not pass for the tier 'chat': FAIL")


def _json(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value
