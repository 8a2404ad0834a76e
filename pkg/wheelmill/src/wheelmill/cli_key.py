"""`wheelmill key`: makes an offline key, signs wheels with it, and tells who signed them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from wheelmill import keys, signing
from wheelmill.entries import SIGNATURE
from wheelmill.errors import GateError, InputError
from wheelmill.store import file_sha256, write_atomic

WHEELS = click.argument("wheels", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))


@click.group("key")
def key() -> None:
    """Make an offline signing key, sign wheels with it, and tell who signed a wheel."""


@key.command("new")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--comment", default="wheelmill", show_default=True, help="Goes into the public half.")
def new(*, file: Path, comment: str) -> None:
    """Write a new Ed25519 key to FILE, and its public half to FILE.pub.

    Set WHEELMILL_KEY_PASSPHRASE to encrypt it.
    """
    made = keys.create(file, comment)
    click.echo(f"{file}: the private key; keep it secret, and keep a copy\n{file}.pub: what users check with\n")
    click.echo(f"{made.line}\nkey {made.fingerprint}")


@key.command("sign")
@click.argument("key_source", metavar="KEY")
@WHEELS
def sign(*, key_source: str, wheels: tuple[Path, ...]) -> None:
    """Sign each WHEEL with KEY, a file or env:NAME, and write WHEEL.sig. A signature by this key is left as it is."""
    private = keys.load(key_source)
    for wheel in wheels:
        target = wheel.with_name(wheel.name + SIGNATURE)
        made = signing.sign(private, wheel.name, file_sha256(wheel))
        if target.exists() and target.read_bytes() != made:
            raise InputError(
                f"{target} is there already and is another signature, so it is not replaced",
                remedy="see whose it is with `wheelmill key verify`, and remove it if it is to go",
            )
        write_atomic(target, made)
        click.echo(f"signed: {target}")


@key.command("verify")
@WHEELS
@click.option("--key", "trusted_keys", multiple=True, help="A key you trust: a .pub file or SHA256:….")
@click.option("--identity", "identities", multiple=True, help="An identity you trust: github:owner/repo.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
def verify(
    *, wheels: tuple[Path, ...], trusted_keys: tuple[str, ...], identities: tuple[str, ...], as_json: bool
) -> None:
    """Tell who vouches for each WHEEL, by WHEEL.sig and WHEEL.provenance beside it.

    Fails where a signature is wrong, and where somebody is named as trusted and does not vouch for it.
    """
    trust = signing.trust(trusted_keys, identities)
    verdicts = {wheel.name: signing.verify_file(wheel, trust=trust) for wheel in wheels}
    if as_json:
        rows = [
            {"file": name, "state": one.state, "by": one.by, "trusted": one.trusted, "text": one.text}
            for name, one in verdicts.items()
        ]
        click.echo(json.dumps({"version": 1, "wheels": rows}, indent=1))
    else:
        for name, one in verdicts.items():
            click.echo(f"{name}: {one.text}")
    bad = [name for name, one in verdicts.items() if one.state == "wrong" or one.trusted is False]
    if bad:
        raise GateError(
            f"nobody you trust vouches for {', '.join(bad)}" if trust.named else f"wrong: {', '.join(bad)}",
            remedy="do not install it; get it again from its index, and ask its maintainers if it is wrong there too",
        )
