"""Keyless signatures: a bundle that GitHub's identity really signed, and what is said where there is none to be had.

Signing itself is tested in a sigstore of one's own: test_keyless_world.py.
"""

import base64
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import sigstore.dsse
import sigstore.errors
import sigstore.models
import sigstore.oidc
import sigstore.sign

from qgate.errors import EnvError, Refused, UserError, WorldError
from qgate.io import envelope, keyless
from qgate.io.keyless import Identity
from tests.unit.promoted import Promoted

GOLDEN = Path(__file__).parents[2] / "golden" / "sigstore"
BUNDLE = (GOLDEN / "staging-dsse.sigstore.json").read_bytes()
ROOT = GOLDEN / "staging-trusted_root.json"
GITHUB = "https://token.actions.githubusercontent.com"
SIGNER = (
    "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/"
    ".github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main"
)


def test_a_real_signature_holds() -> None:
    kind, payload = keyless.opened(BUNDLE, Identity(SIGNER, GITHUB, ROOT))
    assert kind == envelope.PAYLOAD_TYPE
    assert json.loads(payload)["_type"] == "https://in-toto.io/Statement/v1"


def edited() -> bytes:
    value = json.loads(BUNDLE)
    value["dsseEnvelope"]["payload"] = base64.b64encode(b'{"edited": true}').decode()
    return json.dumps(value).encode()


def uncertified() -> bytes:
    value = json.loads(BUNDLE)
    value["verificationMaterial"]["certificate"]["rawBytes"] = "bm9uZQ=="
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("bundle", "identity"),
    [
        (BUNDLE, Identity(SIGNER.replace("main", "evil"), GITHUB, ROOT)),
        (BUNDLE, Identity(SIGNER, "https://gitlab.com", ROOT)),
        (edited(), Identity(SIGNER, GITHUB, ROOT)),
        (b"{}", Identity(SIGNER, GITHUB, ROOT)),
        (uncertified(), Identity(SIGNER, GITHUB, ROOT)),
    ],
    ids=["another workflow", "another provider", "an edited payload", "no bundle", "no certificate"],
)
def test_anything_else_is_refused(bundle: bytes, identity: Identity) -> None:
    with pytest.raises(Refused, match=r"the signature does not hold for https://github\.com/"):
        keyless.opened(bundle, identity)


@pytest.mark.parametrize("content", [None, "", "{}"])
def test_a_trusted_root_that_is_none(tmp_path: Path, content: str | None) -> None:
    root = tmp_path / "root.json"
    if content is not None:
        root.write_text(content)
    with pytest.raises(UserError, match=r"root\.json is no trusted root"):
        keyless.opened(BUNDLE, Identity(SIGNER, GITHUB, root))


def test_evidence_in_no_bundle(promoted: Promoted) -> None:
    with pytest.raises(Refused, match="nobody's identity stands for it"):
        keyless.check(envelope.read(promoted.evidence), Identity(SIGNER, GITHUB, ROOT))


def bundled(run: Promoted, payload: bytes | None = None) -> envelope.Evidence:
    """The run's evidence in a bundle whose envelope carries `payload` in its place."""
    bare = envelope.read(run.evidence)
    inside = base64.b64encode(bare.payload).decode()
    signed = {"payload": inside, "payloadType": envelope.PAYLOAD_TYPE, "signatures": [{"sig": "c2ln"}]}
    run.evidence.write_text(json.dumps({"dsseEnvelope": signed}))
    return envelope.read(run.evidence)


def test_evidence_in_a_forged_bundle(promoted: Promoted) -> None:
    with pytest.raises(Refused, match="the signature does not hold"):
        keyless.check(bundled(promoted), Identity(SIGNER, GITHUB, ROOT))


def test_a_signature_of_something_else(promoted: Promoted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyless, "opened", lambda bundle, identity: (envelope.PAYLOAD_TYPE, b"another"))
    with pytest.raises(Refused, match="what was signed is another document"):
        keyless.check(bundled(promoted), Identity(SIGNER, GITHUB, ROOT))


def test_no_identity_here(promoted: Promoted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sigstore.oidc, "detect_credential", lambda: None)
    with pytest.raises(UserError, match="no OIDC identity") as raised:
        keyless.sign(envelope.read(promoted.evidence))
    assert "id-token: write" in str(raised.value.advice)


def test_sigstore_out_of_reach(promoted: Promoted, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(cls: type) -> None:
        raise sigstore.errors.NetworkError("no route")

    monkeypatch.setattr(sigstore.oidc, "detect_credential", lambda: "token")
    monkeypatch.setattr(sigstore.oidc, "IdentityToken", lambda token: SimpleNamespace(identity="somebody"))
    monkeypatch.setattr(sigstore.models.ClientTrustConfig, "production", classmethod(down))
    with pytest.raises(WorldError, match="sigstore did not sign"):
        keyless.sign(envelope.read(promoted.evidence))
    with pytest.raises(WorldError, match="trusted root cannot be fetched") as raised:
        keyless.opened(BUNDLE, Identity(SIGNER, GITHUB))
    assert "--trusted-root" in str(raised.value.advice)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "sigstore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sigstore", None)
    with pytest.raises(EnvError, match="need sigstore") as raised:
        keyless.opened(BUNDLE, Identity(SIGNER, GITHUB, ROOT))
    assert "qgate[keyless]" in str(raised.value.advice)
