"""SSH signatures: what is read back, and what is refused."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from wheelmill import sshsig

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
# Made with OpenSSH 9.2: `printf hello | ssh-keygen -Y sign -f KEY -n wheelmill`, KEY being the key above.
PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
FROM_OPENSSH = b"""-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgA6EHv/POEL4dcN0Y50vAmWfk1j
CbpQ1fHdyGZBJVMbgAAAAJd2hlZWxtaWxsAAAAAAAAAAZzaGE1MTIAAABTAAAAC3NzaC1l
ZDI1NTE5AAAAQODeR1/hGmJUa9iAROqk9vdp+ujAwNaLg68AFjDD1c6YUzZhkduTFPfN8x
oQ3qHR2ORnDS+Yto3RyVFh0yTMdQE=
-----END SSH SIGNATURE-----
"""


def test_ed25519_signs_as_openssh_does() -> None:
    assert sshsig.sign(KEY, b"hello", "wheelmill") == FROM_OPENSSH


def test_a_public_key_is_read_and_has_openssh_s_fingerprint() -> None:
    key = sshsig.public_key(f"{PUBLIC} a comment\n")
    assert key.line == PUBLIC
    assert key.fingerprint == "SHA256:lbmsoA0yIEcEiVDRnMWuzm+nV+3ZEEpVIURqFoeSspg"


def test_other_messages_and_other_bytes_are_not_signed() -> None:
    found = sshsig.read(FROM_OPENSSH)
    assert found.namespace == "wheelmill"
    assert sshsig.verify(found, b"hello")
    assert not sshsig.verify(found, b"hello ")


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_one_changed_byte_is_never_verified(position: int, flip: int) -> None:
    blob = bytearray(base64.b64decode(b"".join(FROM_OPENSSH.splitlines()[1:-1])))
    blob[position % len(blob)] ^= flip
    text = sshsig.BEGIN + b"\n" + base64.b64encode(bytes(blob)) + b"\n" + sshsig.END
    try:
        found = sshsig.read(text)
    except ValueError:
        return
    assert found.namespace != "wheelmill" or not sshsig.verify(found, b"hello")


@given(st.binary(max_size=300))
def test_whatever_else_is_there_is_refused_with_a_reason(content: bytes) -> None:
    armored = sshsig.BEGIN + b"\n" + base64.b64encode(b"SSHSIG\0\0\0\1" + content) + b"\n" + sshsig.END
    for text in (content, armored):
        with pytest.raises(ValueError, match=r"it|its"):
            sshsig.read(text)


def test_a_signature_by_another_kind_of_key_is_refused() -> None:
    with pytest.raises(ValueError, match="ssh-ed25519"):
        sshsig.public_key("ssh-rsa AAAAB3NzaC1yc2E=")
    with pytest.raises(ValueError, match="base64"):
        sshsig.public_key("ssh-ed25519 @@@@")
