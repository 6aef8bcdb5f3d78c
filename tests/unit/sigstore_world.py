"""A sigstore of one's own on this machine, for tests: what its services answer over HTTP, by sigstore's specifications.

An OIDC provider as GitHub's, Fulcio (a certificate authority that logs to a CT log), Rekor (a transparency log, API v1) and,
where openssl is, a timestamp authority (RFC 3161). Everything on the client's side is sigstore's own code.
"""

from __future__ import annotations

import base64
import json
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from tests.served import served

WORKFLOW = "https://github.com/o/r/.github/workflows/gate.yml@refs/heads/main"
SUBJECT = "repo:o/r:ref:refs/heads/main"
SCT_LIST = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
ISSUER_V1 = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
OPENSSL = shutil.which("openssl")
TSA_CONFIG = """[tsa]
serial = {folder}/serial
signer_cert = {folder}/tsa.crt
signer_key = {folder}/tsa.key
signer_digest = sha256
digests = sha256
default_policy = 1.2.3.4
ess_cert_id_alg = sha256
ess_cert_id_chain = no
"""


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


class World:
    """The services' keys and state. Faults are planted by its attributes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.oidc, self.ca, self.ct, self.rekor, self.tsa = (ec.generate_private_key(ec.SECP256R1()) for _ in range(5))
        self.root = authority(self.ca)
        self.leaves = [b"somebody's entry %d" % number for number in range(5)]
        self.down: set[str] = set()
        self.ct_signs_with = self.ct
        self.rekor_late = timedelta(0)
        self._tsa_certificate()

    @property
    def issuer(self) -> str:
        return f"{self.url}/oidc"

    def answer(self, method: str, path: str, body: bytes, authorization: str) -> bytes:
        """The body of the answer; ValueError: a refusal."""
        if path in self.down:
            raise ValueError("down")
        match method, path:
            case "GET", "/oidc/token":
                return json.dumps({"value": self._token(authorization)}).encode()
            case "POST", "/api/v2/signingCert":
                return json.dumps(self._certificate(json.loads(body), authorization)).encode()
            case "POST", "/api/v1/log/entries":
                return json.dumps(self._logged(json.loads(body))).encode()
            case "POST", "/api/v1/timestamp":
                return self._timestamp(body)
        raise ValueError(f"no such service: {path}")

    def _token(self, authorization: str) -> str:
        if authorization != "bearer the job's":
            raise ValueError("not this job's")
        now = datetime.now(UTC)
        claims = {
            "iss": self.issuer, "aud": "sigstore", "sub": SUBJECT, "iat": now, "exp": now + timedelta(minutes=5),
            "job_workflow_ref": WORKFLOW.removeprefix("https://github.com/"),
        }  # fmt: skip
        return jwt.encode(claims, self.oidc, "ES256")

    def _certificate(self, request: dict[str, str], authorization: str) -> dict[str, Any]:
        """Fulcio: a certificate for the CSR's key that names the token's workflow, with the CT log's timestamp inside."""
        claims = jwt.decode(
            authorization.removeprefix("Bearer "), self.oidc.public_key(), ["ES256"], audience="sigstore"
        )
        csr = x509.load_pem_x509_csr(base64.b64decode(request["certificateSigningRequest"]))
        if not csr.is_signature_valid:
            raise ValueError("the key is not the caller's")
        now = datetime.now(UTC).replace(microsecond=0)
        name = x509.UniformResourceIdentifier(f"https://github.com/{claims['job_workflow_ref']}")
        builder = (
            x509.CertificateBuilder(self.root.subject, x509.Name([]), csr.public_key(), x509.random_serial_number())
            .not_valid_before(now)
            .not_valid_after(now + timedelta(minutes=10))
            .add_extension(key_usage(is_ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.ca.public_key()), critical=False)
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
            .add_extension(x509.UnrecognizedExtension(ISSUER_V1, claims["iss"].encode()), critical=False)
        )
        unlogged = with_timestamp(builder, b"\0" * 8).sign(self.ca, SHA256())
        logged = with_timestamp(builder, self._sct(unlogged, now)).sign(self.ca, SHA256())
        return {"signedCertificateEmbeddedSct": {"chain": {"certificates": [pem(logged), pem(self.root)]}}}

    def _sct(self, certificate: x509.Certificate, now: datetime) -> bytes:
        """RFC 6962, 3.2: a signed certificate timestamp over the precertificate."""
        tbs, time = certificate.tbs_precertificate_bytes, int(now.timestamp() * 1000)
        entry = sha256(spki(self.ca)).digest() + len(tbs).to_bytes(3, "big") + tbs
        signature = self.ct_signs_with.sign(struct.pack("!BBQH", 0, 0, time, 1) + entry + b"\0\0", ec.ECDSA(SHA256()))
        head = struct.pack("!B32sQH", 0, sha256(spki(self.ct)).digest(), time, 0)
        return head + struct.pack("!BBH", 4, 3, len(signature)) + signature

    def _logged(self, proposed: dict[str, Any]) -> dict[str, Any]:
        """Rekor v1: the entry in the log, the proof that it is, and the promise with its time."""
        content = proposed["spec"]["proposedContent"]
        envelope, verifier = json.loads(content["envelope"]), content["verifiers"][0]
        hashes = [sha256(content["envelope"].encode()), sha256(base64.b64decode(envelope["payload"]))]
        spec = {
            **{name: {"algorithm": "sha256", "value": value.hexdigest()} for name, value in
               zip(("envelopeHash", "payloadHash"), hashes, strict=True)},
            "signatures": [{"signature": each["sig"], "verifier": verifier} for each in envelope["signatures"]],
        }  # fmt: skip
        body = json.dumps({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec}, sort_keys=True).encode()
        self.leaves.append(body)
        index, log = len(self.leaves) - 1, sha256(spki(self.rekor)).digest()
        time = int((datetime.now(UTC) + self.rekor_late).timestamp())
        promise = {"body": b64(body), "integratedTime": time, "logID": log.hex(), "logIndex": index}
        signed = json.dumps(promise, sort_keys=True, separators=(",", ":")).encode()
        root = tree(self.leaves)
        note = f"rekor.test - 1\n{len(self.leaves)}\n{b64(root)}\n".encode()
        checkpoint = note.decode() + f"\n\u2014 rekor.test {b64(log[:4] + self.rekor.sign(note, ec.ECDSA(SHA256())))}\n"
        proof = {
            "logIndex": index, "rootHash": root.hex(), "treeSize": len(self.leaves), "checkpoint": checkpoint,
            "hashes": [each.hex() for each in path(self.leaves, index)],
        }  # fmt: skip
        promised = b64(self.rekor.sign(signed, ec.ECDSA(SHA256())))
        return {sha256(body).hexdigest(): {**promise, "verification": {
            "inclusionProof": proof, "signedEntryTimestamp": promised,
        }}}  # fmt: skip

    def _timestamp(self, query: bytes) -> bytes:
        (self.folder / "query").write_bytes(query)
        words = ["ts", "-reply", "-config", "tsa.cnf", "-section", "tsa", "-queryfile", "query"]
        return subprocess.run([str(OPENSSL), *words], cwd=self.folder, check=True, capture_output=True).stdout

    def _tsa_certificate(self) -> None:
        key = self.tsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (self.folder / "tsa.key").write_bytes(key)
        (self.folder / "tsa.cnf").write_text(TSA_CONFIG.format(folder=self.folder), encoding="utf-8")
        (self.folder / "serial").write_text("01\n", encoding="utf-8")
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "timestamps")])
        now = datetime.now(UTC)
        self.tsa_certificate = (
            x509.CertificateBuilder(self.root.subject, subject, self.tsa.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(key_usage(is_ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True)
            .sign(self.ca, SHA256())
        )
        (self.folder / "tsa.crt").write_text(pem(self.tsa_certificate), encoding="utf-8")

    def trusted_root(self) -> dict[str, Any]:
        """trusted_root.json of this world."""
        since = {"start": "2020-01-01T00:00:00Z"}
        logs = {name: [{
            "baseUrl": self.url, "hashAlgorithm": "SHA2_256", "logId": {"keyId": b64(sha256(spki(key)).digest())},
            "publicKey": {"rawBytes": b64(spki(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": since},
        }] for name, key in {"tlogs": self.rekor, "ctlogs": self.ct}.items()}  # fmt: skip
        chains = {"certificateAuthorities": [self.root], "timestampAuthorities": [self.tsa_certificate, self.root]}
        authorities = {name: [{
            "subject": {"organization": "test", "commonName": "test"}, "uri": self.url, "validFor": since,
            "certChain": {"certificates": [{"rawBytes": b64(each.public_bytes(Encoding.DER))} for each in chain]},
        }] for name, chain in chains.items()}  # fmt: skip
        return {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1", **logs, **authorities}

    def trust_config(self) -> dict[str, Any]:
        """What a client needs to sign in this world."""
        service = {"majorApiVersion": 1, "validFor": {"start": "2020-01-01T00:00:00Z"}, "operator": "test"}
        urls = {"caUrls": "", "oidcUrls": "/oidc", "rekorTlogUrls": ""} | (
            {"tsaUrls": "/api/v1/timestamp"} if OPENSSL else {}
        )
        services: dict[str, Any] = {name: [{"url": self.url + path, **service}] for name, path in urls.items()}
        services |= {"rekorTlogConfig": {"selector": "ANY"}, "tsaConfig": {"selector": "ANY"}}
        return {
            "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json", "trustedRoot": self.trusted_root(),
            "signingConfig": {"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json", **services},
        }  # fmt: skip


def authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """A self-signed root."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a sigstore of one's own")])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
        .add_extension(key_usage(is_ca=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, SHA256())
    )


def key_usage(*, is_ca: bool) -> x509.KeyUsage:
    no = dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False)
    return x509.KeyUsage(
        digital_signature=not is_ca, key_cert_sign=is_ca, crl_sign=is_ca, encipher_only=False, decipher_only=False, **no
    )


def with_timestamp(builder: x509.CertificateBuilder, sct: bytes) -> x509.CertificateBuilder:
    """RFC 6962, 3.3: the list of one timestamp as an extension, a DER octet string of a TLS vector."""
    vector = struct.pack("!HH", len(sct) + 2, len(sct)) + sct
    return builder.add_extension(
        x509.UnrecognizedExtension(SCT_LIST, b"\x04" + der_length(len(vector)) + vector), critical=False
    )


def der_length(length: int) -> bytes:
    return bytes([length]) if length < 128 else bytes([0x81, length])


def tree(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962, 2.1: the Merkle tree's hash."""
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    left = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\1" + tree(leaves[:left]) + tree(leaves[left:])).digest()


def path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """RFC 6962, 2.1.1: the audit path of a leaf."""
    if len(leaves) == 1:
        return []
    left = 1 << (len(leaves) - 1).bit_length() - 1
    if index < left:
        return [*path(leaves[:left], index), tree(leaves[left:])]
    return [*path(leaves[left:], index - left), tree(leaves[:left])]


@contextmanager
def living(folder: Path) -> Iterator[World]:
    """A world whose services answer."""
    world = World(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.serve("GET", b"")

        def do_POST(self) -> None:
            self.serve("POST", self.rfile.read(int(self.headers["Content-Length"])))

        def serve(self, method: str, body: bytes) -> None:
            name = self.path.partition("?")[0]
            try:
                status, data = 200, world.answer(method, name, body, self.headers.get("Authorization", ""))
            except ValueError as error:
                status, data = 500, json.dumps({"message": str(error)}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    world.url = f"http://127.0.0.1:{server.server_port}"
    with served(server):
        yield world
