"""Keyless signing from the token to the promotion, in a sigstore of one's own: only its services are made here."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from sigstore.models import ClientTrustConfig

from qgate.cli import main
from qgate.errors import ExitCode
from qgate.io import envelope
from tests.unit.promoted import Promoted
from tests.unit.sigstore_world import OPENSSL, SUBJECT, WORKFLOW, World, living


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The services, and a CI job that may ask for a token."""
    (tmp_path / "world").mkdir()
    with living(tmp_path / "world") as world:
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "the job's")
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{world.issuer}/token?api-version=1")
        for name, value in (("config", world.trust_config()), ("root", world.trusted_root())):
            (tmp_path / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
        yield world


def sign(run: Promoted) -> int:
    return main(["sign", str(run.evidence), "--keyless", "--trust-config", str(run.folder / "config.json")])


def bundle(run: Promoted) -> Path:
    return run.folder / "evidence.intoto.sigstore.json"


def verify(run: Promoted, world: World, identity: str = WORKFLOW, issuer: str | None = None) -> int:
    words = ["verify", run.good, "--evidence", bundle(run), "--tier", "chat", "--identity", identity]
    words += ["--issuer", issuer or world.issuer, "--trusted-root", run.folder / "root.json"]
    return main(list(map(str, words)))


def test_what_a_job_signs_is_promoted(promoted: Promoted, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert sign(promoted) == ExitCode.PASS
    assert envelope.read(bundle(promoted)).payload == promoted.evidence.read_bytes()
    said = capsys.readouterr().out
    assert said.endswith(f"evidence.intoto.sigstore.json: signed by {WORKFLOW}\n")
    assert verify(promoted, world, identity=said.rsplit(" ", 1)[1].strip()) == ExitCode.PASS
    assert f"signed by {WORKFLOW}, as {world.issuer} vouches" in capsys.readouterr().out


def test_without_files_the_public_sigstore_is_meant(
    promoted: Promoted, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = ClientTrustConfig.from_json(json.dumps(world.trust_config()))
    monkeypatch.setattr(ClientTrustConfig, "production", classmethod(lambda cls: public))
    assert main(["sign", str(promoted.evidence), "--keyless"]) == ExitCode.PASS
    words = ["verify", promoted.good, "--evidence", bundle(promoted), "--tier", "chat", "--identity", WORKFLOW]
    assert main([*map(str, words), "--issuer", world.issuer]) == ExitCode.PASS


def test_others_have_not_signed(promoted: Promoted, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert sign(promoted) == ExitCode.PASS
    assert verify(promoted, world, identity=SUBJECT) == ExitCode.FAIL
    assert verify(promoted, world, issuer="https://gitlab.com") == ExitCode.FAIL
    assert capsys.readouterr().err.count("the signature does not hold for") == 2


def test_another_worlds_root(
    promoted: Promoted, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sign(promoted) == ExitCode.PASS
    (tmp_path / "elsewhere").mkdir()
    other = World(tmp_path / "elsewhere")
    (promoted.folder / "root.json").write_text(json.dumps(other.trusted_root()), encoding="utf-8")
    assert verify(promoted, world) == ExitCode.FAIL
    assert "the signature does not hold for" in capsys.readouterr().err


def test_an_edited_statement(promoted: Promoted, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert sign(promoted) == ExitCode.PASS
    value = json.loads(bundle(promoted).read_text(encoding="utf-8"))
    promoted.edit(lambda statement: statement["predicate"].update(run_id="another"))
    assert sign(promoted) == ExitCode.PASS
    other = json.loads(bundle(promoted).read_text(encoding="utf-8"))
    value["dsseEnvelope"] = other["dsseEnvelope"]  # one entry's proof around the other's words
    bundle(promoted).write_text(json.dumps(value), encoding="utf-8")
    assert verify(promoted, world) == ExitCode.FAIL
    assert "the signature does not hold for" in capsys.readouterr().err


def test_logged_after_the_certificate_ended(
    promoted: Promoted, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.rekor_late = timedelta(hours=1)
    assert sign(promoted) == ExitCode.PASS
    assert verify(promoted, world) == ExitCode.FAIL
    assert "the signature does not hold for" in capsys.readouterr().err


@pytest.mark.skipif(OPENSSL is None, reason="needs openssl, which is the timestamp authority")
def test_the_timestamp_authority_is_asked_and_may_be_down(promoted: Promoted, world: World) -> None:
    for is_down in (False, True):
        if is_down:
            world.down.add("/api/v1/timestamp")
        assert sign(promoted) == ExitCode.PASS
        material = json.loads(bundle(promoted).read_text(encoding="utf-8"))["verificationMaterial"]
        assert bool(material["timestampVerificationData"].get("rfc3161Timestamps")) is not is_down
        assert verify(promoted, world) == ExitCode.PASS


@pytest.mark.parametrize("service", ["/api/v2/signingCert", "/api/v1/log/entries"])
def test_a_service_is_down(promoted: Promoted, world: World, service: str, capsys: pytest.CaptureFixture[str]) -> None:
    world.down.add(service)
    assert sign(promoted) == ExitCode.INCONCLUSIVE
    said = capsys.readouterr().err
    assert "sigstore did not sign: " in said
    assert "500" in said
    assert not bundle(promoted).exists()


def test_nobody_answers(promoted: Promoted, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    config = promoted.folder / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace(world.url, "http://127.0.0.1:9"), encoding="utf-8")
    assert sign(promoted) == ExitCode.INCONCLUSIVE
    assert "sigstore did not sign" in capsys.readouterr().err


def test_a_certificate_that_the_log_does_not_vouch_for(
    promoted: Promoted, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.ct_signs_with = ec.generate_private_key(ec.SECP256R1())
    assert sign(promoted) == ExitCode.INCONCLUSIVE
    assert "SCT verify failed" in capsys.readouterr().err


def test_a_job_without_the_permission(
    promoted: Promoted, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    assert sign(promoted) == ExitCode.USER_ERROR
    assert "id-token: write" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "{}", '{"mediaType": "application/json"}'])
def test_a_trust_configuration_that_is_none(promoted: Promoted, world: World, content: str) -> None:
    (promoted.folder / "config.json").write_text(content, encoding="utf-8")
    assert sign(promoted) == ExitCode.USER_ERROR
