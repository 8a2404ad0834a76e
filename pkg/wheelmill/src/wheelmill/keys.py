"""Offline keys: Ed25519 in OpenSSH's own format, in a file or in an environment variable, never printed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from wheelmill import sshsig
from wheelmill.errors import InputError, MissingError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PASSPHRASE = "WHEELMILL_KEY_PASSPHRASE"  # noqa: S105, the variable's name
IN_ENVIRONMENT = "env:"
OTHERS = 0o077
LARGEST = 1 << 16


def create(path: Path, comment: str) -> sshsig.PublicKey:
    """A new key in `path`, readable by its owner alone, and its public half in `path.pub`.

    It is encrypted where WHEELMILL_KEY_PASSPHRASE is set. Raises InputError when either file is there already.
    """
    need_cryptography()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public_path = path.with_name(path.name + ".pub")
    for one in (path, public_path):
        if one.exists() or one.is_symlink():
            raise InputError(
                f"{one} is there already, and a key that is overwritten can never sign again",
                remedy="name another file, or move that one away",
            )
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist", remedy="create it, or name another file")
    key = Ed25519PrivateKey.generate()
    secret = os.environ.get(PASSPHRASE, "").encode()
    lock = form.BestAvailableEncryption(secret) if secret else form.NoEncryption()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, lock)
    public = sshsig.PublicKey(key.public_key().public_bytes_raw())
    # O_EXCL: not even a run at the same moment overwrites one.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(private)
    with public_path.open("x", encoding="utf-8") as file:
        file.write(f"{public.line} {' '.join(comment.split())}\n")
    return public


def load(source: str) -> Ed25519PrivateKey:
    """The key of a file, or of `env:NAME`. Raises InputError, which never tells what was read."""
    _refuse_content(source)
    need_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    secret, content = os.environ.get(PASSPHRASE, "").encode() or None, _content(source)
    try:
        key = load_ssh_private_key(content, secret)
    except TypeError as error:
        asked = "needs a passphrase" if secret is None else "has no passphrase, though one is given"
        raise InputError(
            f"the key of {source} {asked}", remedy=f"set {PASSPHRASE} to its passphrase, or unset it"
        ) from error
    except (ValueError, UnsupportedAlgorithm):
        # The parser's own message may repeat what it read.
        why = "its passphrase is wrong, or it is damaged" if secret else "it is no OpenSSH private key, or damaged"
        raise InputError(
            f"the key of {source} cannot be read: {why}",
            remedy="give the private key (not the .pub file) that `wheelmill key new` or `ssh-keygen -t ed25519` wrote",
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"the key of {source} is no Ed25519 key", remedy="make one with `wheelmill key new`, and sign with that"
        )
    return key


def _refuse_content(source: str) -> None:
    """Raises InputError, which does not repeat it, for a key in place of where it lies."""
    variable = source.removeprefix(IN_ENVIRONMENT)
    if "PRIVATE KEY" in source or "\n" in source or (variable != source and not re.fullmatch(r"\w{1,200}", variable)):
        raise InputError(
            "a key's file or env:NAME is wanted, and this looks like the key itself, which others can read in lists of "
            "processes and in logs",
            remedy="put it into an environment variable and say env:NAME, with the name alone; make a new key if "
            "others may have seen this one",
        )


def _content(source: str) -> bytes:
    if source.startswith(IN_ENVIRONMENT):
        name = source.removeprefix(IN_ENVIRONMENT)
        value = os.environ.get(name, "")
        if not value.strip():
            raise InputError(
                f"the environment variable {name} is not set, so there is no key",
                remedy="set it to the content of the private key file, from the secrets of your CI",
            )
        # Some CI systems drop the line end that the format wants.
        return value.replace("\r\n", "\n").strip().encode() + b"\n"
    path = Path(source)
    try:
        if path.stat().st_mode & OTHERS:
            raise InputError(
                f"the key {path} can be read by others than its owner, so it is not used",
                remedy=f"run `chmod 600 {path.name}` there, and make a new key if others may have read it",
            )
        with path.open("rb") as file:
            return file.read(LARGEST)
    except OSError as error:
        raise InputError(
            f"the key {path} cannot be read: {error.strerror}",
            remedy="name the file that `wheelmill key new` wrote, or env:NAME for an environment variable",
        ) from error


def public(source: str) -> str:
    """The fingerprint of a `.pub` file, of a line of one, or of a fingerprint itself."""
    if source.startswith("SHA256:"):
        return source
    text = source
    if not source.startswith(sshsig.KIND.decode() + " "):
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"the public key {source} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}",
                remedy="name the .pub file, or give the fingerprint SHA256:… that the project publishes",
            ) from error
    try:
        return sshsig.public_key(text).fingerprint
    except ValueError as error:
        raise InputError(
            f"the public key {source} cannot be read: {error}",
            remedy="name the .pub file that `wheelmill key new` wrote",
        ) from None


def need_cryptography() -> None:
    """Raises MissingError where the extra is not installed."""
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise MissingError(
            "keys and signatures need the package cryptography, which is not installed",
            remedy="pip install 'wheelmill[sign]'",
        ) from error
