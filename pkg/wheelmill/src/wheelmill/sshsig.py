"""SSH signatures, as `ssh-keygen -Y sign` writes and `ssh-keygen -Y verify` reads them, with Ed25519 keys alone.

The format is OpenSSH's PROTOCOL.sshsig. A signature carries the public key and a namespace, so that a signature made
for one purpose says nothing for another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAGIC, VERSION, HASH = b"SSHSIG", 1, b"sha512"
KIND = b"ssh-ed25519"
KEY_BYTES, SIGNATURE_BYTES = 32, 64
BEGIN, END = b"-----BEGIN SSH SIGNATURE-----", b"-----END SSH SIGNATURE-----"
LINE = 70


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The 32 bytes of an Ed25519 public key."""

    raw: bytes

    @property
    def blob(self) -> bytes:
        return _strings(KIND, self.raw)

    @property
    def line(self) -> str:
        """As a `.pub` file and an allowed-signers file state it."""
        return f"{KIND.decode()} {base64.b64encode(self.blob).decode()}"

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` prints it."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """What a signature says of itself; `verify` tells whether it is true."""

    key: PublicKey
    namespace: str
    raw: bytes


def public_key(line: str) -> PublicKey:
    """The key of a `.pub` file's line. Raises ValueError when it is not one of Ed25519."""
    words = line.split()
    if len(words) < 2 or words[0] != KIND.decode():  # noqa: PLR2004
        raise ValueError("it is not a line `ssh-ed25519 KEY [COMMENT]`")
    return _key(_decoded(words[1].encode()))


def sign(key: Ed25519PrivateKey, message: bytes, namespace: str) -> bytes:
    """The armored signature of a message."""
    public = PublicKey(key.public_key().public_bytes_raw())
    space = namespace.encode()
    body = _strings(KIND, key.sign(_signed(message, space, HASH)))
    blob = MAGIC + struct.pack(">I", VERSION) + _strings(public.blob, space, b"", HASH, body)
    text = base64.b64encode(blob)
    lines = [text[at : at + LINE] for at in range(0, len(text), LINE)]
    return b"\n".join([BEGIN, *lines, END, b""])


def read(armored: bytes) -> Signature:
    """Raises ValueError, with the reason, for what is not an SSH signature by an Ed25519 key."""
    text = armored.strip()
    if not (text.startswith(BEGIN) and text.endswith(END)):
        raise ValueError("it is not an SSH signature")
    blob = _decoded(b"".join(text[len(BEGIN) : -len(END)].split()))
    head = MAGIC + struct.pack(">I", VERSION)
    if not blob.startswith(head):
        raise ValueError("it is not an SSH signature of version 1")
    key, space, _, algorithm, body = _parts(blob[len(head) :], 5)
    if algorithm != HASH:
        raise ValueError(f"its hash is not {HASH.decode()}")
    kind, raw = _parts(body, 2)
    if kind != KIND or len(raw) != SIGNATURE_BYTES:
        raise ValueError("it is not by an Ed25519 key")
    return Signature(key=_key(key), namespace=space.decode(errors="replace"), raw=raw)


def verify(signature: Signature, message: bytes) -> bool:
    """Whether the key that the signature carries signed this message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    signed = _signed(message, signature.namespace.encode(), HASH)
    try:
        Ed25519PublicKey.from_public_bytes(signature.key.raw).verify(signature.raw, signed)
    except (InvalidSignature, ValueError):
        return False
    return True


def _signed(message: bytes, namespace: bytes, algorithm: bytes) -> bytes:
    return MAGIC + _strings(namespace, b"", algorithm, hashlib.sha512(message).digest())


def _key(blob: bytes) -> PublicKey:
    kind, raw = _parts(blob, 2)
    if kind != KIND or len(raw) != KEY_BYTES:
        raise ValueError("its key is not an Ed25519 key")
    return PublicKey(raw)


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"its base64 is broken: {error}") from error


def _strings(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def _parts(blob: bytes, count: int) -> list[bytes]:
    """The `count` strings that a blob consists of, and nothing else."""
    parts = []
    for _ in range(count):
        if len(blob) < 4:  # noqa: PLR2004
            raise ValueError("it is cut short")
        (size,) = struct.unpack(">I", blob[:4])
        if size > len(blob) - 4:
            raise ValueError("it is cut short")
        parts.append(blob[4 : 4 + size])
        blob = blob[4 + size :]
    if blob:
        raise ValueError("it has bytes after its end")
    return parts
