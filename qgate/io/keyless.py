"""Evidence and a CI job's OIDC identity in, a sigstore bundle out; or the bundle checked. Uses the network to sign.

Checking needs none where a trusted root is named. The cryptography, the certificate and the transparency log are
sigstore's (https://docs.sigstore.dev), an extra that is imported where it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from cryptography.x509 import Certificate, RFC822Name, SubjectAlternativeName, UniformResourceIdentifier

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


def sign(evidence: Evidence, trust_config: Path | None = None) -> tuple[str, str]:
    """A sigstore bundle (JSON) around the evidence, and the name in the certificate: the CI job that this runs in.

    `trust_config`: a ClientTrustConfig, which names a sigstore of one's own; None: the public one, fetched through TUF.
    Raises UserError where there is no identity or no such file, WorldError where sigstore did not sign.
    """
    library = _library()
    identity = _ambient(library)
    config = None if trust_config is None else _trust_config(library, trust_config)
    try:
        context = library.sign.SigningContext.from_trust_config(config or library.models.ClientTrustConfig.production())
        with context.signer(identity) as signer:
            bundle = signer.sign_dsse(library.dsse.Statement(evidence.payload))
    except Exception as error:  # sigstore's own, its HTTP library's, and some that it keeps private
        said = str(error) or str(error.__cause__) or type(error).__name__
        raise WorldError(f"sigstore did not sign: {said}", advice="try again, or sign with a key: --key") from error
    return bundle.to_json(), _subject(bundle.signing_certificate)


def _ambient(library: Any) -> Any:
    """The identity token of this CI job."""
    try:
        token = library.oidc.detect_credential()
        if token is None:
            raise UserError("this machine has no OIDC identity to sign with", advice=NO_IDENTITY)
        return library.oidc.IdentityToken(token)
    except library.oidc.IdentityError as error:
        raise UserError(f"no OIDC identity to sign with: {error}", advice=NO_IDENTITY) from error


def _trust_config(library: Any, file: Path) -> Any:
    try:
        config = library.models.ClientTrustConfig.from_json(file.read_text(encoding="utf-8"))
        config.signing_config.get_fulcio()
    except (OSError, ValueError, library.errors.Error) as error:
        raise UserError(f"{file} is no trust configuration to sign with: {error}") from error
    return config


def _subject(certificate: Certificate) -> str:
    """Whom the certificate names: what `--identity` is compared with, which is not always the token's own `sub`."""
    names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    found = [*names.get_values_for_type(UniformResourceIdentifier), *names.get_values_for_type(RFC822Name)]
    return found[0] if found else "a certificate without a name"


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
    except (library.errors.Error, ValueError) as error:
        raise Refused(f"the signature does not hold for {identity.name}: {error}") from error
    return kind, payload


def _trusted_root(library: Any, identity: Identity) -> Any:
    if identity.trusted_root is None:
        return library.models.ClientTrustConfig.production().trusted_root
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
