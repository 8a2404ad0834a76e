"""Attestations of PEP 740: an identity, such as a GitHub workflow, vouches for a file in Sigstore's public log.

Checking needs no network: sigstore carries the roots of trust. Making one does, and an identity of the CI's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from wheelmill.errors import InputError, MissingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType

    from pypi_attestations import Attestation, Publisher

# Fulcio's names of what a certificate states: https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md
ISSUER, REPOSITORY, CONFIG = (f"1.3.6.1.4.1.57264.1.{number}" for number in (8, 12, 18))
GITHUB = "https://token.actions.githubusercontent.com"
WORKFLOWS = "/.github/workflows/"


def identity(publisher: Publisher) -> str:
    """A publisher in one word, as a reader names it: `github:owner/repo/release.yml`."""
    match publisher.kind:
        case "GitHub":
            return f"github:{publisher.repository}/{publisher.workflow}"
        case "GitLab":
            return f"gitlab:{publisher.repository}/{publisher.workflow_filepath}"
        case "Google":
            return f"google:{publisher.email}"
        case "CircleCI":
            return f"circleci:{publisher.project_id}/{publisher.pipeline_definition_id}"


def matches(name: str, trusted: Iterable[str]) -> bool:
    """Whether an identity is a trusted one: the same, or of a workflow of a trusted repository."""
    return any(name == one or name.startswith(f"{one.rstrip('/')}/") for one in trusted if ":" in one)


def verify(content: bytes, file: str, sha256: str) -> tuple[str, ...]:
    """The identities that a provenance object proves to vouch for these bytes under this file name.

    Every attestation in it must hold. Raises ValueError, with the reason, when one does not or there is none.
    """
    library = _library()
    try:
        provenance = library.Provenance.model_validate_json(content)
    except ValueError as error:
        raise ValueError(f"{file}.provenance does not hold: it is no provenance object of PEP 740") from error
    try:
        distribution = library.Distribution(name=file, digest=sha256)
        pairs = [(bundle.publisher, one) for bundle in provenance.attestation_bundles for one in bundle.attestations]
        for publisher, one in pairs:
            one.verify(publisher, distribution, offline=True)
    except Exception as error:  # whatever untrusted bytes make the verifier raise, they are not verified
        raise ValueError(f"{file}.provenance does not hold: {_first_line(error)}") from error
    if not pairs:
        raise ValueError(f"{file}.provenance holds no attestation")
    return tuple(dict.fromkeys(identity(publisher) for publisher, _ in pairs))


def provenance(attestations: Iterable[Attestation]) -> bytes:
    """The provenance object (PEP 740) of attestations of one file, each under whom its own certificate names.

    Raises InputError for an identity that is no GitHub workflow: then the CI's own publisher makes the object.
    """
    library = _library()
    bundles: dict[str, tuple[Publisher, list[Attestation]]] = {}
    for one in attestations:
        publisher = _publisher(library, one.certificate_claims)
        bundles.setdefault(identity(publisher), (publisher, []))[1].append(one)
    made = library.Provenance(
        attestation_bundles=[
            library.AttestationBundle(publisher=publisher, attestations=several)
            for publisher, several in bundles.values()
        ]
    )
    text: str = made.model_dump_json()
    return text.encode()


def make(files: Iterable[tuple[str, str]]) -> dict[str, bytes]:
    """The provenance object of each (file, SHA-256), attested by the identity that this CI job has.

    Raises MissingError where there is no identity or Sigstore cannot be reached.
    """
    library = _library()
    import sigstore.errors
    from sigstore.models import ClientTrustConfig
    from sigstore.oidc import IdentityError, IdentityToken, detect_credential
    from sigstore.sign import SigningContext

    try:
        token = detect_credential()
    except IdentityError as error:
        raise MissingError(
            f"this CI job may not ask for an identity: {_first_line(error)}",
            remedy="give the job `permissions: id-token: write`",
        ) from error
    if token is None:
        raise MissingError(
            "there is no identity here to attest with: attestations are made in a CI job",
            remedy="run `wheelmill publish --attest` in GitHub Actions with `permissions: id-token: write`, "
            "or sign with an offline key: `--sign KEY`",
        )
    try:
        context = SigningContext.from_trust_config(ClientTrustConfig.production())
        with context.signer(IdentityToken(token), cache=True) as signer:
            return {
                name: provenance([library.Attestation.sign(signer, library.Distribution(name=name, digest=sha256))])
                for name, sha256 in files
            }
    except (sigstore.errors.Error, library.AttestationError, OSError) as error:
        raise MissingError(
            f"Sigstore did not attest: {_first_line(error)}",
            remedy="run the same command again; what was published stays, and nothing is sent twice",
        ) from error


def _publisher(library: ModuleType, claims: Mapping[str, str]) -> Any:
    """The publisher that a certificate names."""
    repository, config = urlsplit(claims.get(REPOSITORY, "")), claims.get(CONFIG, "")
    if claims.get(ISSUER) != GITHUB or WORKFLOWS not in config:
        raise InputError(
            f"the attestation's identity is of {claims.get(ISSUER, 'nobody')!r}, not of a GitHub workflow",
            remedy="attest in GitHub Actions, or bring the .provenance file that your CI's publisher makes",
        )
    workflow = config.split(WORKFLOWS, 1)[1].split("@", 1)[0]
    return library.GitHubPublisher(repository=repository.path.strip("/"), workflow=workflow)


def _library() -> ModuleType:
    try:
        import pypi_attestations
    except ImportError as error:
        raise MissingError(
            "attestations need the package pypi-attestations, which is not installed",
            remedy="pip install 'wheelmill[attest]'",
        ) from error
    # It warns of what is meant here: that no newer roots of trust are fetched.
    logging.getLogger("sigstore").setLevel(logging.ERROR)
    return pypi_attestations


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
