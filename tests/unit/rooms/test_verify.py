"""A run's evidence against the checkpoint as it is now: every way to tamper is refused in words of its own."""

import errno
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from qgate.errors import ArtefactError, CheckpointError, ExitCode, Refused, UserError
from qgate.io import envelope, hashes, signing
from qgate.judge.promotion import Demand, Weighed, weigh
from qgate.rooms.verify import verify
from tests.unit.promoted import Promoted, key_pair

NOW = datetime.now(UTC) + timedelta(hours=12)
"""After the run that is held against it, however long the tests before that run took."""
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
    assert "too old: 1 hour, and" in refusal(run, minutes, now=finished + timedelta(hours=1))
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
    other, _ = signing.sign(replace(envelope.read(run.evidence), payload=edited, signatures=()), private)
    run.evidence.write_text(json.dumps(whole | {"payload": other["payload"]}), encoding="utf-8")
    assert "it was edited after it was signed" in refusal(run, checkpoint=run.bad, signer=public)


def test_another_key(run: Promoted, tmp_path: Path) -> None:
    sign(run, key_pair(tmp_path)[0])
    assert "or signed by others" in refusal(run, signer=key_pair(tmp_path, "other")[1])


def test_a_signature_of_something_else(run: Promoted, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    bare = envelope.read(run.evidence)
    signed, _ = signing.sign(replace(bare, payload_type="text/plain"), private)
    run.evidence.write_text(json.dumps(signed), encoding="utf-8")
    assert "what was signed is a text/plain" in refusal(run, signer=public)


def test_unsigned_where_a_key_is_asked_for(run: Promoted, tmp_path: Path) -> None:
    assert "is not signed: anybody may have edited it" in refusal(run, signer=key_pair(tmp_path)[1])


def test_a_right_signature_among_wrong_ones(run: Promoted, tmp_path: Path) -> None:
    """Any that fits is enough, whatever it is called; those that do not fit say nothing."""
    private, public = key_pair(tmp_path)
    sign(sign(run, key_pair(tmp_path, "other")[0]), private)
    right = _json(run.evidence)["signatures"][-1]
    wrong = [{"keyid": right["keyid"], "sig": text} for text in ("", "AAAA", "AAAA" + right["sig"][4:])]
    run.edit(lambda value: value.update(signatures=[*wrong, {"sig": right["sig"]}]))
    assert verify(run.good, run.evidence, CHAT, NOW, public).variant == "good"
    run.edit(lambda value: value.update(signatures=wrong))
    assert "no signature of the evidence fits the key" in refusal(run, signer=public)


def test_both_alphabets_of_base64(run: Promoted, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    sign(run, private)
    table = str.maketrans("+/", "-_")
    run.edit(lambda value: value["signatures"][0].update(sig=value["signatures"][0]["sig"].translate(table)))
    assert verify(run.good, run.evidence, CHAT, NOW, public).variant == "good"


@pytest.mark.parametrize(
    "make", [X25519PrivateKey.generate, Ed448PrivateKey.generate, partial(dsa.generate_private_key, 2048)]
)
def test_a_key_of_another_type(run: Promoted, tmp_path: Path, make: Callable[[], Any]) -> None:
    key = make()
    private, public = tmp_path / "odd.pem", tmp_path / "odd.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(UserError, match="no private key that can be used"):
        signing.sign(envelope.read(run.evidence), private)
    sign(run, key_pair(tmp_path)[0])
    with pytest.raises(UserError, match="no public key that can be used"):
        verify(run.good, run.evidence, CHAT, NOW, public)


def test_keys_in_each_others_place(run: Promoted, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    with pytest.raises(UserError, match="no private key"):
        signing.sign(envelope.read(run.evidence), public)
    with pytest.raises(UserError, match="no public key"):
        verify(run.good, run.evidence, CHAT, NOW, private)


@pytest.mark.parametrize("content", [b"", b"no PEM", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_no_key(run: Promoted, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    for key in (tmp_path / "key", tmp_path / "nowhere"):
        with pytest.raises(UserError):
            verify(run.good, run.evidence, CHAT, NOW, key)
        with pytest.raises(UserError):
            signing.sign(envelope.read(run.evidence), key)


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder elsewhere": (lambda folder: (folder / "more").symlink_to("/usr", True), "more is a link to a folder"),
    "a link to nothing": (lambda folder: (folder / "tokenizer.model").symlink_to("nowhere"), "a link to nothing"),
    "a pipe": (lambda folder: os.mkfifo(folder / "pipe"), "neither file nor folder"),
    "a line end in a name": (lambda folder: (folder / "a\n  - all is well").touch(), r"'a\\n  - all is well'"),
    "an override in a name": (lambda folder: (folder / "a\u202egpj.py").touch(), r"'a\\u202egpj.py'"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_not_hashed_may_not_be_there(run: Promoted, name: str) -> None:
    make, message = ODD[name]
    make(run.good)
    with pytest.raises(CheckpointError, match=message):
        verify(run.good, run.evidence, CHAT, NOW)


def test_links_to_files_are_followed(run: Promoted, tmp_path: Path) -> None:
    """As the hub's cache has them; what they point to is hashed."""
    blob = tmp_path / "blob"
    (run.good / "model.safetensors").rename(blob)
    (run.good / "model.safetensors").symlink_to(blob)
    assert verify(run.good, run.evidence, CHAT, NOW).variant == "good"
    blob.write_bytes(blob.read_bytes() + b"1")
    assert "model.safetensors was changed" in refusal(run)


@pytest.mark.parametrize("name", ["CONFIG.json", "config.json ", "ｃonfig.json"])
def test_a_name_that_looks_the_same(run: Promoted, name: str) -> None:
    (run.good / "config.json").rename(run.good / name)
    said = refusal(run)
    assert "config.json is missing" in said
    assert f"{name} was added" in said


@pytest.mark.parametrize("name", ["Chat", "chat ", "сhat", "ｃhat", ""])
def test_a_tier_that_looks_the_same(run: Promoted, name: str) -> None:
    assert f"does not speak of the tier {name!a}, only of chat" in refusal(run, Demand((name,)))


@pytest.mark.parametrize("verdict", ["FAIL", "INCONCLUSIVE", "INVALID", "VOID"])
def test_only_a_pass_is_one(run: Promoted, verdict: str) -> None:
    run.edit(lambda value: value["predicate"]["tiers"]["chat"]["variants"]["good"].update(verdict=verdict))
    assert f"good did not pass for the tier 'chat': {verdict}" in refusal(run)


def test_a_clock_that_is_ahead(run: Promoted) -> None:
    for minutes, is_refused in ((4, False), (6, True)):
        date = (NOW + timedelta(minutes=minutes)).isoformat()
        run.edit(lambda value, date=date: value["predicate"].update(finished_at=date))
        demand = Demand(("chat",), max_age=timedelta(hours=1))
        if is_refused:
            assert "dated in the future" in refusal(run, demand)
        else:
            assert verify(run.good, run.evidence, demand, NOW).variant == "good"


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
    "another version": (lambda value: value.update(predicateType="https://qgate.dev/verdict/v2"), "of another kind"),
    "a file twice": (
        lambda value: value["subject"].append(value["subject"][3]),
        "the file good/config.json is there twice",
    ),
    "another hash": (
        lambda value: value["subject"][3]["digest"].update(sha256="0" * 64),
        "the digest of good is not that of its files",
    ),
    "half a character": (lambda value: value["predicate"].update(run_id="\ud800"), "surrogates not allowed"),
    "a name that is Markdown": (
        lambda value: value["predicate"]["variants"].update({"`x` #": value["predicate"]["variants"]["good"]}),
        "String should match pattern",
    ),
    "no number": (
        lambda value: value["predicate"]["variants"]["good"].update(defect_share=float("nan")),
        "NaN is no number",
    ),
    "too great a number": (
        lambda value: value["predicate"]["variants"]["good"].update(bits_per_weight=9e999),
        "Infinity is no number",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_evidence_that_cannot_be_read(run: Promoted, name: str) -> None:
    change, message = UNREADABLE[name]
    run.edit(change)
    with pytest.raises(ArtefactError, match=message) as caught:
        verify(run.good, run.evidence, CHAT, NOW)
    assert caught.value.exit_code is ExitCode.USER_ERROR


def test_a_field_that_is_there_twice(run: Promoted) -> None:
    """One reader takes the first, another the last."""
    text = run.evidence.read_text(encoding="utf-8")
    run.evidence.write_text(text.replace('"run_id"', '"run_id": "another", "run_id"'), encoding="utf-8")
    with pytest.raises(ArtefactError, match="the field 'run_id' is there twice"):
        verify(run.good, run.evidence, CHAT, NOW)


def test_a_number_beyond_all_numbers(run: Promoted) -> None:
    text = run.evidence.read_text(encoding="utf-8")
    run.evidence.write_text(re.sub(r'"bits_per_weight": [\d.]+', '"bits_per_weight": 1e999', text), encoding="utf-8")
    with pytest.raises(ArtefactError, match="bits_per_weight: Input should be a finite number"):
        verify(run.good, run.evidence, CHAT, NOW)


def test_evidence_of_a_gigabyte(run: Promoted) -> None:
    with run.evidence.open("r+b") as stream:
        stream.truncate(1 << 30)
    with pytest.raises(ArtefactError, match="more than 64 MiB"):
        verify(run.good, run.evidence, CHAT, NOW)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"a": 1}', b"{}{}", b"[" * 200_000, b'{"a":' * 200_000])
def test_what_is_no_evidence(run: Promoted, content: bytes) -> None:
    run.evidence.write_bytes(content)
    with pytest.raises(ArtefactError):
        verify(run.good, run.evidence, CHAT, NOW)
    run.evidence.unlink()
    with pytest.raises(ArtefactError, match="cannot read"):
        verify(run.good, run.evidence, CHAT, NOW)


def test_of_equal_bytes_the_variant_that_passed_counts(run: Promoted) -> None:
    """The same checkpoint as two variants, e.g. with other engine arguments: what passed is what may be promoted."""

    def failed(value: dict[str, Any]) -> None:
        predicate = value["predicate"]
        predicate["variants"] = {"again": predicate["variants"].pop("again")} | predicate["variants"]
        predicate["tiers"]["chat"]["variants"]["again"] = predicate["tiers"]["chat"]["variants"]["bad"]

    run.twin("again")
    run.edit(failed)
    found = verify(run.good, run.evidence, CHAT, NOW)
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
