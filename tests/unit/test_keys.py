"""Offline keys: made once, read from where they are kept, and never told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec

from wheelmill import keys, sshsig
from wheelmill.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_key_is_its_owner_s_alone_and_its_public_half_beside_it(tmp_path: Path) -> None:
    made = keys.create(tmp_path / "key", "demo\nwheels")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "key.pub").read_text() == f"{made.line} demo wheels\n"
    loaded = keys.load(str(tmp_path / "key"))
    assert loaded.public_key().public_bytes_raw() == made.raw
    assert keys.public(str(tmp_path / "key.pub")) == keys.public(made.line) == made.fingerprint


@pytest.mark.parametrize("there", ["key", "key.pub"])
def test_neither_half_is_ever_overwritten(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        keys.create(tmp_path / "key", "")
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_a_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "key.pub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is there already"):
        keys.create(tmp_path / "key", "")


def test_a_key_with_a_passphrase_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(keys.PASSPHRASE, "correct horse")
    keys.create(tmp_path / "key", "")
    keys.load(str(tmp_path / "key"))
    monkeypatch.setenv(keys.PASSPHRASE, "wrong")
    with pytest.raises(InputError, match="passphrase is wrong"):
        keys.load(str(tmp_path / "key"))
    monkeypatch.delenv(keys.PASSPHRASE)
    with pytest.raises(InputError, match="needs a passphrase"):
        keys.load(str(tmp_path / "key"))


def test_a_key_comes_from_the_environment_as_ci_systems_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = keys.create(tmp_path / "key", "")
    monkeypatch.setenv("SECRET", (tmp_path / "key").read_text().strip().replace("\n", "\r\n"))
    assert keys.load("env:SECRET").public_key().public_bytes_raw() == made.raw
    with pytest.raises(InputError, match="NOTHING is not set"):
        keys.load("env:NOTHING")


def test_what_is_no_key_is_told_without_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hunter2")
    with pytest.raises(InputError, match="no OpenSSH private key") as told:
        keys.load("env:SECRET")
    assert "hunter2" not in f"{told.value} {told.value.remedy}"
    keys.create(tmp_path / "key", "")
    (tmp_path / "key.pub").chmod(0o600)
    with pytest.raises(InputError, match="no OpenSSH private key"):
        keys.load(str(tmp_path / "key.pub"))


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    keys.create(tmp_path / "key", "")
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(InputError, match="can be read by others"):
        keys.load(str(tmp_path / "key"))


def test_another_kind_of_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    text = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    monkeypatch.setenv("SECRET", text.decode())
    with pytest.raises(InputError, match="no Ed25519 key"):
        keys.load("env:SECRET")


@pytest.mark.parametrize("source", ["absent.pub", "ssh-ed25519 AAAA", sshsig.KIND.decode() + " ?"])
def test_a_public_key_that_cannot_be_read_is_told(source: str) -> None:
    with pytest.raises(InputError, match="public key"):
        keys.public(source)


@pytest.mark.parametrize(
    "source",
    [
        "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n",
        "env:-----BEGIN OPENSSH PRIVATE KEY-----",
        "hunter2\n",
        "env:b3+/hunter2",
    ],
)
def test_a_key_in_place_of_its_file_is_not_repeated(source: str) -> None:
    with pytest.raises(InputError, match="looks like the key itself") as told:
        keys.load(source)
    assert "hunter2" not in f"{told.value} {told.value.remedy}"
