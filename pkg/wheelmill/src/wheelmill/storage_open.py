"""Where `--to` points: a folder, or a bucket."""

from __future__ import annotations

import getpass
import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from wheelmill.errors import InputError, MissingError
from wheelmill.names import did_you_mean
from wheelmill.storage import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wheelmill.storage import Storage

SCHEMES = ("s3", "file")
BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")


class Counted(Folder):
    """A folder that tells of the bytes that it took."""

    def __init__(self, root: Path, options: Mapping[str, Any]) -> None:
        super().__init__(root)
        self._sent: Callable[[int], None] | None = options.get("sent")

    def put(self, path: str, source: Path, sha256: str) -> None:
        super().put(path, source, sha256)
        if self._sent is not None:
            self._sent(source.stat().st_size)


def open_storage(url: str, *, endpoint: str | None = None, **options: Any) -> Storage:
    """The storage at `s3://BUCKET/PREFIX`, `file:///FOLDER` or a folder's path; `options` are `Bucket`'s.

    Raises InputError for another URL, and MissingError where s3fs is not installed.
    """
    if not url.strip():
        raise InputError("--to is empty, so nothing says where to publish", remedy="name a folder, or s3://BUCKET")
    if not re.match(r"[A-Za-z0-9+]+:/", url):
        return Counted(Path(url), options)
    parts = urlsplit(url)
    if "://" not in url:
        raise InputError(f"--to {url} is no URL", remedy=f"write {parts.scheme}://… , or ./{url} for a folder")
    if "@" in parts.netloc:
        raise InputError(
            "--to holds credentials, which would end up in logs and in the shell's history",
            remedy="put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or into a profile",
        )
    if parts.query or parts.fragment:
        raise InputError(f"--to {url} has a part after ? or #, which means nothing here", remedy="leave it out")
    match parts.scheme:
        case "file" if parts.netloc in {"", "localhost"} and parts.path.startswith("/"):
            return Counted(Path(unquote(parts.path)), options)
        case "file":
            raise InputError(f"--to {url} names a host, and a folder is meant", remedy="write file:///FOLDER")
        case "s3":
            return _bucket(parts.netloc, parts.path, endpoint, options)
        case other:
            raise InputError(
                f"nothing can be published to {other}://", remedy=did_you_mean(other, [f"{one}://" for one in SCHEMES])
            )


def owner() -> str:
    """Who writes, for others who wait."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    name = f"{user}@{socket.gethostname()} (process {os.getpid()})"
    run = os.environ.get("GITHUB_RUN_ID")
    said = f"{name}, run {run} of {os.environ.get('GITHUB_REPOSITORY', 'GitHub')}" if run else name
    # It goes into a header.
    return said.encode("ascii", "replace").decode()


def _bucket(name: str, prefix: str, endpoint: str | None, options: dict[str, Any]) -> Storage:
    if not BUCKET.fullmatch(name):
        raise InputError(f"{name!r} is no name of a bucket", remedy="write --to s3://BUCKET or s3://BUCKET/PREFIX")
    try:
        from s3fs import S3FileSystem
    except ImportError as error:
        raise MissingError(
            "publishing to a bucket needs the package s3fs, which is not installed",
            remedy="pip install 'wheelmill[s3]'",
        ) from error
    from wheelmill.storage_s3 import Bucket

    if endpoint is not None and not re.match(r"https?://[^/]", endpoint):
        raise InputError(f"--endpoint {endpoint} is no address", remedy="write it as https://HOST or http://HOST:PORT")
    if endpoint is not None and "@" in urlsplit(endpoint).netloc:
        raise InputError(
            "--endpoint holds credentials, which would end up in logs and in the shell's history",
            remedy="put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or into a profile",
        )
    fs = S3FileSystem(
        endpoint_url=endpoint,
        use_listings_cache=False,
        skip_instance_cache=True,
        default_block_size=16 << 20,
    )
    return Bucket(fs, name, unquote(prefix), owner=owner(), **options)
