"""Who vouches for a wheel: an identity (a PEP 740 attestation), a key (an SSH signature), or nobody.

What a key signs is one line, `SHA-256  FILE`, as `sha256sum` prints it: it names the file and its bytes, can be checked
without the wheel at hand, and by anyone who has OpenSSH:

    sha256sum FILE | ssh-keygen -Y verify -f ALLOWED -I wheelmill -n wheelmill -s FILE.sig
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from wheelmill import keys, sshsig
from wheelmill.entries import PROVENANCE, SIGNATURE
from wheelmill.errors import InputError
from wheelmill.names import listing
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NAMESPACE = "wheelmill"
KINDS = ("github", "gitlab", "google", "circleci")


@dataclass(frozen=True, kw_only=True, slots=True)
class Trust:
    """Whom the reader trusts: fingerprints of keys, and identities as `attest.Identity` writes them.

    With nobody named, a signature is checked all the same, and whose it is left to the reader.
    """

    keys: frozenset[str] = frozenset()
    identities: frozenset[str] = frozenset()

    @property
    def named(self) -> bool:
        return bool(self.keys or self.identities)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """`by` are the identities and fingerprints; `trusted` whether one is trusted, None where nobody was named.

    `text` says it in words, for a terminal and a page. `wrong` is an error everywhere.
    """

    state: Literal["attested", "signed", "unsigned", "wrong"]
    by: tuple[str, ...] = ()
    trusted: bool | None = None
    text: str


def trust(trusted_keys: Iterable[str], identities: Iterable[str]) -> Trust:
    """The trust that options name. Raises InputError for a key that cannot be read, or an identity of no known form."""
    names = frozenset(identities)
    for name in names:
        if name.split(":", 1)[0] not in KINDS or not name.partition(":")[2]:
            raise InputError(
                f"{name!r} is no identity, so nothing could match it",
                remedy=f"write it as github:owner/repo; known kinds are {listing(KINDS)}",
            )
    return Trust(keys=frozenset(map(keys.public, trusted_keys)), identities=names)


def statement(file: str, sha256: str) -> bytes:
    """What is signed of a wheel."""
    return f"{sha256}  {file}\n".encode()


def sign(key: Ed25519PrivateKey, file: str, sha256: str) -> bytes:
    """The content of `FILE.sig`."""
    return sshsig.sign(key, statement(file, sha256), NAMESPACE)


def verify(
    file: str, sha256: str, *, signature: bytes | None, provenance: bytes | None, trust: Trust | None = None
) -> Verdict:
    """What `FILE.sig` and `FILE.provenance` say of a file with that SHA-256; None where there is none.

    Whatever is there must be right: one wrong signature beside a right one is wrong. Raises MissingError where the
    package that checks is not installed, so that what was not checked is never told as fine.
    """
    trust = trust or Trust()
    by: list[tuple[str, str]] = []
    try:
        if provenance is not None:
            from wheelmill import attest

            by += [("attested by", one) for one in attest.verify(provenance, file, sha256)]
        if signature is not None:
            by.append(("signed by key", _signer(signature, file, sha256)))
    except ValueError as error:
        return Verdict(state="wrong", trusted=False if trust.named else None, text=f"signature WRONG: {error}")
    if not by:
        return Verdict(state="unsigned", trusted=False if trust.named else None, text="not signed")
    names = tuple(name for _, name in by)
    said = "; ".join(f"{how} {name}" for how, name in by)
    trusted = _trusted(names, trust) if trust.named else None
    return Verdict(
        state="attested" if provenance is not None else "signed",
        by=names,
        trusted=trusted,
        text=said + _advice(trusted),
    )


def verify_file(path: Path, *, sha256: str | None = None, trust: Trust | None = None) -> Verdict:
    """The verdict on a wheel by what lies beside it. `sha256` is its known hash; without, it is read."""
    beside = [path.with_name(path.name + suffix) for suffix in (SIGNATURE, PROVENANCE)]
    signature, provenance = (one.read_bytes() if one.exists() else None for one in beside)
    if signature is provenance is None:
        return verify(path.name, "", signature=None, provenance=None, trust=trust)
    known = sha256 or file_sha256(path)
    return verify(path.name, known, signature=signature, provenance=provenance, trust=trust)


def _signer(signature: bytes, file: str, sha256: str) -> str:
    keys.need_cryptography()
    found = sshsig.read(signature)
    if found.namespace != NAMESPACE:
        raise ValueError(f"{file}{SIGNATURE} was made for {found.namespace!r}, not for wheels")
    if not sshsig.verify(found, statement(file, sha256)):
        raise ValueError(
            f"{file}{SIGNATURE}, which names key {found.key.fingerprint}, is not of this file name and SHA-256 {sha256}"
        )
    return found.key.fingerprint


def _trusted(names: tuple[str, ...], trust: Trust) -> bool:
    from wheelmill import attest

    return any(name in trust.keys or attest.matches(name, trust.identities) for name in names)


def _advice(trusted: bool | None) -> str:  # noqa: FBT001, three states of one answer
    match trusted:
        case True:
            return ""
        case False:
            return " (nobody that you named as trusted)"
        case None:
            return " (compare this with what the project publishes)"
