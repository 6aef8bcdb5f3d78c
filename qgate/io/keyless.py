"""Evidence and a CI job's OIDC identity in, a sigstore bundle out; or the bundle checked. Uses the network to sign.

Checking needs none where a trusted root is named. The cryptography, the certificate and the transparency log are
sigstore's (https://docs.sigstore.dev), an extra that is imported where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from qgate.errors import EnvError, Refused, UserError, WorldError
from qgate.io.envelope import PAYLOAD_TYPE, Evidence

NO_IDENTITY = (
    "in GitHub Actions give the job `permissions: id-token: write`; in GitLab an id_token named SIGSTORE_ID_TOKEN with"
    " `aud: sigstore`; elsewhere sign with a key: --key KEY.pem"
)


@dataclass(frozen=True)
class Identity:
    """Who must have signed, as the certificate names them."""

    name: str
    """The certificate's subject: a workflow's URL with its ref, or an e-mail address. Compared whole."""
    issuer: str
    """URL of the OIDC provider that vouched for it."""
    trusted_root: Path | None = None
    """A trusted_root.json; None: sigstore's public one, fetched through TUF."""


def sign(evidence: Evidence) -> tuple[str, str]:
    """A sigstore bundle (JSON) around the evidence, and who signed it: the identity of the CI job that this runs in.

    Raises UserError where there is no identity, WorldError where sigstore cannot be reached.
    """
    library = _library()
    try:
        token = library.oidc.detect_credential()
        if token is None:
            raise UserError("this machine has no OIDC identity to sign with", advice=NO_IDENTITY)
        identity = library.oidc.IdentityToken(token)
        context = library.sign.SigningContext.from_trust_config(library.models.ClientTrustConfig.production())
        with context.signer(identity) as signer:
            bundle = signer.sign_dsse(library.dsse.Statement(evidence.payload))
    except library.oidc.IdentityError as error:
        raise UserError(f"no OIDC identity to sign with: {error}", advice=NO_IDENTITY) from error
    except (library.errors.Error, library.oidc.ExpiredIdentity) as error:
        raise WorldError(f"sigstore did not sign: {error}", advice="try again, or sign with a key: --key") from error
    return bundle.to_json(), identity.identity


def check(evidence: Evidence, identity: Identity) -> str:
    """The name of the `identity` whose signature the evidence bears. Raises Refused, UserError."""
    if evidence.bundle is None:
        raise Refused(
            "the evidence is no sigstore bundle: nobody's identity stands for it",
            advice="where the run was made: qgate sign EVIDENCE --keyless; then pass what it writes",
        )
    kind, payload = opened(evidence.bundle, identity)
    if kind != PAYLOAD_TYPE or payload != evidence.payload:
        raise Refused(f"what was signed is another document ({kind}), not this statement")
    return identity.name


def opened(bundle: bytes, identity: Identity) -> tuple[str, bytes]:
    """Type and bytes of the document that `identity` signed. Raises Refused, UserError."""
    library = _library()
    try:
        verifier = library.verify.Verifier(trusted_root=_trusted_root(library, identity))
        policy = library.verify.policy.Identity(identity=identity.name, issuer=identity.issuer)
        kind, payload = verifier.verify_dsse(library.models.Bundle.from_json(bundle), policy)
    except (library.errors.NetworkError, library.errors.TUFError) as error:
        raise WorldError(
            f"sigstore's trusted root cannot be fetched: {error}",
            advice="without a network name a file: --trusted-root trusted_root.json",
        ) from error
    except (library.errors.Error, library.models.InvalidBundle) as error:
        raise Refused(f"the signature does not hold for {identity.name}: {error}") from error
    return kind, payload


def _trusted_root(library: Any, identity: Identity) -> Any:
    if identity.trusted_root is None:
        return library.models.TrustedRoot.production()
    try:
        return library.models.TrustedRoot.from_file(str(identity.trusted_root))
    except (OSError, ValueError, library.errors.Error) as error:
        raise UserError(f"{identity.trusted_root} is no trusted root: {error}") from error


def _library() -> Any:
    """The sigstore package with the modules used here (0.5 s, so only where it is asked for)."""
    try:
        for part in ("errors", "models", "oidc", "sign", "verify"):
            import_module(f"sigstore.{part}")
        return import_module("sigstore")
    except ImportError as error:
        raise EnvError("keyless signatures need sigstore", advice="pip install 'qgate[keyless]'") from error
