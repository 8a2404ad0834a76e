"""`wheelmill publish`: sends an index to a folder or a bucket."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wheelmill.cli_index import GRACE
from wheelmill.errors import InputError
from wheelmill.names import listing
from wheelmill.storage import Folder

if TYPE_CHECKING:
    import datetime as dt

    from wheelmill.publish import Outcome


@click.command("publish")
@click.argument("site", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--to", "url", required=True, help="A folder, file:///FOLDER, or s3://BUCKET/PREFIX.")
@click.option("--endpoint", help="The server of s3://, where it is not AWS; or set AWS_ENDPOINT_URL_S3.")
@click.option("--matrix", "matrix_path", type=click.Path(path_type=Path), default="matrix.yaml", show_default=True)
@click.option("--sign", "key_source", metavar="KEY", help="Sign new wheels that are not signed: a file, or env:NAME.")
@click.option("--attest", is_flag=True, help="Attest new wheels that are not signed, with this CI job's identity.")
@click.option("--allow-older", is_flag=True, help="Take a release that is older than the newest one there.")
@click.option("--exactly", is_flag=True, help="List nothing there but what SITE has.")
@GRACE
@click.option("--single-publisher", is_flag=True, help="No other run publishes there; for servers without locks.")
@click.option("--wait", type=click.FloatRange(min=0), default=900, show_default=True, help="Seconds for another run.")
@click.option(
    "--lease",
    type=click.IntRange(2, 3600),
    default=120,
    show_default=True,
    help="Seconds of silence after which another run may take over from this one.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done, or refused, as JSON.")
def publish(  # noqa: PLR0913  a verb has as many as it has options
    *,
    site: Path,
    url: str,
    endpoint: str | None,
    matrix_path: Path,
    key_source: str | None,
    attest: bool,
    allow_older: bool,
    exactly: bool,
    grace: dt.timedelta,
    single_publisher: bool,
    wait: float,
    lease: int,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Publish the index SITE, which `wheelmill index` wrote, to a folder or to S3-compatible storage.

    Wheels that are there are not sent again; nothing is sent when anything is refused.
    """
    from wheelmill import keys, matrix, storage_open
    from wheelmill import listing as indexes
    from wheelmill import publish as engine
    from wheelmill.publish_progress import Sending

    wanted = matrix.load(matrix_path)
    key = keys.load(key_source) if key_source else None
    sending = Sending(quiet=as_json)
    storage = storage_open.open_storage(
        url,
        endpoint=endpoint,
        seconds=lease,
        wait=wait,
        conditional=not single_publisher,
        tell=sending.note,
        sent=sending.sent,
    )
    if isinstance(storage, Folder) and storage.root.resolve().is_relative_to(site.resolve()):
        raise InputError(
            f"--to {url} is in {site} itself, which is to be published", remedy="name another folder, or a bucket"
        )
    asked = engine.Asked(
        demanded=wanted.gates["publish"],
        operators=(wanted.operators.namespace, wanted.operators.samples) if wanted.operators else None,
        allow_older=allow_older,
        exactly=exactly,
        dry_run=dry_run,
        attest=attest,
        grace=grace,
        variants=indexes.read(Folder(site), anew=False).variants,
    )
    try:
        with sending:
            done = engine.publish(site, storage, asked, key=key, begin=sending.begin)
    except engine.RefusedError as refused:
        if as_json:
            rows = [asdict(one) for one in refused.refusals]
            click.echo(json.dumps({"version": 1, "to": url, "refused": rows}, indent=1))
        raise
    if as_json:
        said = {"version": 1, "to": url, "dry_run": dry_run, "refused": [], **asdict(done)}
        click.echo(json.dumps(said, indent=1))
        return
    _say(done, url, dry_run=dry_run)


def _say(done: Outcome, url: str, *, dry_run: bool) -> None:
    rows = (
        ("new", done.new),
        ("changed", done.changed),
        ("listed no more", done.removed),
        ("removed, after the grace period", done.expired),
        ("signed", done.signed),
    )
    for what, files in rows:
        if files:
            click.echo(f"{what}: {listing(files, limit=12)}")
    size = f"{done.size / 1e6:.1f} MB"
    click.echo(f"as it was: {done.unchanged}")
    click.echo(f"dry run: {size} would go to {url}" if dry_run else f"published to {url}: {size} of new wheels")
    sys.stdout.flush()
