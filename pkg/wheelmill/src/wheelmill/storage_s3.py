"""An index in a bucket of S3 or of a server that speaks its API, through s3fs.

A wheel is written only where no file of that name is (`If-None-Match: *`), and pages only by the one run that holds the
lock object. A server that ignores such conditions is found out before anything is written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import secrets
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from wheelmill.errors import GateError, InputError, MissingError
from wheelmill.lease import Holder, Lease
from wheelmill.s3_errors import Refused, UnsupportedError, told
from wheelmill.served import headers, is_immutable
from wheelmill.storage import LOCK, refuse_other
from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from s3fs import S3FileSystem

PROBE = ".wheelmill.probe"
# Seconds that a lock is believed without a sign of life: where it does not say, and at most.
LEASE, LONGEST = 120, 3600
SHA256 = "sha256"
UPLOADS, CHUNK = 4, 16 << 20


class Bucket:
    """An index under a prefix of a bucket.

    `sent` hears of uploaded bytes; `conditional` is False where the user says that no other run publishes there.
    """

    def __init__(
        self,
        fs: S3FileSystem,
        bucket: str,
        prefix: str,
        *,
        owner: str,
        seconds: float = LEASE,
        wait: float = 900,
        conditional: bool = True,
        tell: Callable[[str], None] = lambda _: None,
        sent: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._fs, self._bucket, self._prefix = fs, bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._url = f"s3://{bucket}/{self._prefix}"
        self._conditional, self._sent = conditional, sent
        self._lease = Lease(_LockObject(self), owner, seconds=seconds, wait=wait, tell=tell) if conditional else None
        self._locked = False

    def read(self, path: str) -> bytes | None:
        from fsspec.asyn import sync

        key = self._key(path)

        async def get() -> bytes:
            answer = await self._fs._call_s3("get_object", Bucket=self._bucket, Key=key)  # noqa: SLF001
            async with answer["Body"] as body:
                content: bytes = await body.read()
            return content

        # s3fs's own `cat_file` asks three times for what one request answers.
        try:
            with told(self._url, path):
                content: bytes = sync(self._fs.loop, get)
        except FileNotFoundError:
            return None
        return content

    def write(self, path: str, content: bytes) -> None:
        self._check()
        self.call("put_object", path, Body=content, **_headers(path))

    def put(self, path: str, source: Path, sha256: str) -> None:
        """Raises GateError when a file of that name has other bytes; the same bytes are not sent again."""
        self._check()
        refuse_other(source, file_sha256(source), sha256)
        if not is_immutable(path):
            self.write(path, source.read_bytes())
            return
        if self._has(path, sha256):
            return
        mode = "create" if self._conditional else "overwrite"
        meta = {"Metadata": {SHA256: sha256}, **_headers(path)}
        try:
            with told(self._url, path):
                self._fs.put_file(
                    str(source),
                    f"{self._bucket}/{self._key(path)}",
                    callback=_callback(self._sent),
                    chunksize=CHUNK,
                    max_concurrency=UPLOADS,
                    mode=mode,
                    **meta,
                )
        except Refused:
            # Another run was first, or a retry met its own first attempt.
            if not self._has(path, sha256):
                raise _overwrite(path) from None

    def size(self, path: str) -> int | None:
        head = self.head(path)
        return None if head is None else int(head["ContentLength"])

    def sha256(self, path: str) -> str | None:
        """As it was stated when the file was put there; of a file that another tool put there, read."""
        head = self.head(path)
        if head is None:
            return None
        stated = head.get("Metadata", {}).get(SHA256)
        return str(stated) if stated else hashlib.sha256(self.read(path) or b"").hexdigest()

    def list(self, prefix: str) -> Iterator[str]:
        token: dict[str, str] = {}
        while True:
            page = self.call("list_objects_v2", None, Prefix=self._prefix + prefix, **token)
            for one in page.get("Contents", ()):
                path = one["Key"].removeprefix(self._prefix)
                if path and not any(part.startswith(".") for part in path.split("/")):
                    yield path
            if not page.get("IsTruncated"):
                return
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def remove(self, path: str) -> None:
        self._check()
        self.call("delete_object", path)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Raises MissingError where the server cannot hold a lock, or another run holds it for too long."""
        if self._lease is not None:
            self._probe()
        with self._lease.hold() if self._lease is not None else contextlib.nullcontext():
            self._locked = True
            try:
                yield
            finally:
                self._locked = False

    def head(self, path: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self.call("head_object", path)
        except FileNotFoundError:
            return None
        return found

    def call(self, method: str, path: str | None, **arguments: Any) -> Any:
        """One request. Raises FileNotFoundError, `Refused` for a condition that does not hold, or what it means."""
        key = {} if path is None else {"Key": self._key(path)}
        with told(self._url, path or "its list of files"):
            return self._fs.call_s3(method, Bucket=self._bucket, **key, **arguments)

    def _key(self, path: str) -> str:
        if not path or path.startswith("/") or any(part in {"", ".", ".."} for part in path.split("/")):
            raise InputError(
                f"{path!r} is no path inside an index, so nothing is read or written there",
                remedy="name files as `files/NAME.whl`, without `..` and without a leading `/`",
            )
        return self._prefix + path

    def _check(self) -> None:
        if self._locked and self._lease is not None:
            self._lease.check()

    def _has(self, path: str, sha256: str) -> bool:
        """Whether a file is there with these bytes. Raises GateError when it has others."""
        known = self.sha256(path)
        if known is not None and known != sha256:
            raise _overwrite(path)
        return known is not None

    def _probe(self) -> None:
        """Raises MissingError when the server takes a write whose condition does not hold."""
        name = f"{PROBE}-{secrets.token_hex(8)}"
        try:
            self.call("put_object", name, Body=b"")
            if self._refuses(name, IfNoneMatch="*") and self._refuses(name, IfMatch=f'"{"0" * 32}"'):
                return
        finally:
            with contextlib.suppress(OSError, MissingError):
                self.call("delete_object", name)
        raise MissingError(
            "this server does not keep conditional writes (If-None-Match and If-Match), so two runs could overwrite "
            "each other",
            remedy="see to it that only one run publishes there at a time, and say so with --single-publisher; or "
            "upgrade the server",
        )

    def _refuses(self, name: str, **condition: str) -> bool:
        try:
            self.call("put_object", name, Body=b"", **condition)
        except Refused:
            return True
        except UnsupportedError:
            return False
        return False


def _seconds(said: str) -> float:
    """What a lock says of its own lease, within what a lease may be: it is read from the bucket."""
    try:
        stated = float(said)
    except ValueError:
        return LEASE
    return LEASE if math.isnan(stated) else min(max(stated, 0.0), LONGEST)


class _LockObject:
    """The lock of a bucket as a lease's slot: an object, its ETag the state, what it says in its metadata."""

    def __init__(self, bucket: Bucket) -> None:
        self._at, self._token, self._beats = bucket, secrets.token_hex(16), 0

    def look(self) -> Holder | None:
        head = self._at.head(LOCK)
        if head is None:
            return None
        said: Mapping[str, str] = head.get("Metadata", {})
        now = parsedate_to_datetime(head["ResponseMetadata"]["HTTPHeaders"]["date"])
        return Holder(
            state=head["ETag"],
            owner=said.get("owner", "somebody"),
            since=said.get("since", "some time ago"),
            seconds=_seconds(said.get("seconds", "")),
            silent=(now - head["LastModified"]).total_seconds(),
        )

    def write(self, state: str | None, owner: str, since: str, seconds: float) -> str | None:
        self._beats += 1
        said = {"owner": owner, "since": since, "seconds": str(seconds), "token": self._token}
        # Each beat has other bytes, so that a lock that was renewed is not taken for the one that was looked at.
        body = json.dumps({**said, "beat": self._beats, "at": time.time()}).encode()
        condition = {"IfNoneMatch": "*"} if state is None else {"IfMatch": state}
        try:
            done = self._at.call(
                "put_object",
                LOCK,
                Body=body,
                Metadata=said,
                CacheControl="no-store",
                ContentType="application/json",
                **condition,
            )
        except (Refused, FileNotFoundError):
            return self._own()
        return str(done["ETag"])

    def free(self, state: str) -> None:
        try:
            with contextlib.suppress(Refused, FileNotFoundError):
                self._at.call("delete_object", LOCK, IfMatch=state)
        except UnsupportedError:
            # Some servers keep conditions of writes and not of removals.
            if self._own() == state:
                self._at.call("delete_object", LOCK)

    def _own(self) -> str | None:
        """The state where the refused write was a retry of one that had come through."""
        head = self._at.head(LOCK)
        return str(head["ETag"]) if head and head.get("Metadata", {}).get("token") == self._token else None


def _overwrite(path: str) -> GateError:
    return GateError(
        f"{path} is published already with other bytes, and users have its hash, so it is not replaced",
        remedy="give the new wheel a new version or a build number",
    )


def _headers(path: str) -> dict[str, str]:
    said = headers(path)
    return {"ContentType": said.content_type, "CacheControl": said.cache_control}


def _callback(sent: Callable[[int], None]) -> Any:
    from fsspec.callbacks import Callback

    class Sent(Callback):  # type: ignore[misc]
        def relative_update(self, inc: int = 1) -> None:
            sent(inc)

    return Sent()
