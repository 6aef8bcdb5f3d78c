"""Evidence and a PEM key in, a signed envelope out; or the envelope checked. Reads keys. The cryptography is a library's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import CryptoSigner, Signature, SSlibKey

from qgate.errors import Refused, UserError
from qgate.io.envelope import PAYLOAD_TYPE, Evidence

HOW_TO_MAKE = (
    "make a pair: openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out key.pub"
)


def sign(evidence: Evidence, key: Path) -> tuple[dict[str, Any], str]:
    """A DSSE envelope of the evidence, signatures it had and one by the private `key`; and the key's id. Raises UserError."""
    signer = _signer(key)
    envelope = _envelope(evidence)
    envelope.sign(signer)
    return envelope.to_dict(), signer.public_key.keyid


def check(evidence: Evidence, key: Path) -> str:
    """The id of the public `key`, which signed the evidence. Raises Refused, UserError."""
    public = _public_key(key)
    if not evidence.signatures:
        raise Refused(
            "the evidence is not signed: anybody may have edited it",
            advice="where the run was made: qgate sign EVIDENCE --key KEY.pem; then pass what it writes",
        )
    if evidence.payload_type != PAYLOAD_TYPE:
        raise Refused(f"what was signed is a {evidence.payload_type}, not a statement ({PAYLOAD_TYPE})")
    message = _envelope(evidence).pae()
    if not any(_fits(public, signature, message) for _, signature in evidence.signatures):
        raise Refused(
            f"no signature of the evidence fits the key {key}: it was edited after it was signed, or signed by others",
            advice="fetch the evidence from the run itself, or name the public key of whoever made the run",
        )
    return public.keyid


def _fits(public: SSlibKey, signature: bytes, message: bytes) -> bool:
    """The key id of a signature is only a hint, so every signature is tried."""
    try:
        public.verify_signature(Signature(public.keyid, signature.hex()), message)
    except UnverifiedSignatureError:
        return False
    return True


def _envelope(evidence: Evidence) -> Envelope:
    signatures = {keyid: Signature(keyid, signature.hex()) for keyid, signature in evidence.signatures}
    return Envelope(evidence.payload, evidence.payload_type, signatures)


def _signer(key: Path) -> CryptoSigner:
    try:
        return CryptoSigner(load_pem_private_key(_pem(key), None))
    except (ValueError, TypeError) as error:
        raise UserError(f"{key} is no private key that can be used: {error}", advice=HOW_TO_MAKE) from error


def _public_key(key: Path) -> SSlibKey:
    try:
        return SSlibKey.from_crypto(load_pem_public_key(_pem(key)))
    except (ValueError, TypeError) as error:
        raise UserError(f"{key} is no public key that can be used: {error}", advice=HOW_TO_MAKE) from error


def _pem(key: Path) -> bytes:
    try:
        return key.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the key {key}: {error.strerror}", advice=HOW_TO_MAKE) from error
