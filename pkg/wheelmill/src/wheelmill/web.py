"""The one door to an index: pages and parts of files, of a server or a folder, within bounds of time and size."""

from __future__ import annotations

import io
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from wheelmill import __version__
from wheelmill.errors import MissingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from requests import Response

PAGE, TOTAL = 64 << 20, 512 << 20
CONNECT, READ, WHOLE, SESSION = 10, 20, 120, 900
REDIRECTS = 8
BLOCK = 1 << 16
# A name and password in an address that an error repeats.
SECRET = re.compile(r"//[^/@\s]+@")
ABSENT = frozenset({401, 403, 404, 410})
PARTIAL = 206
RETRIES = Retry(total=2, backoff_factor=0.3, status_forcelist=(500, 502, 503, 504), raise_on_status=False)
FAULTS = (requests.RequestException, OSError, UnicodeError)


class AbsentError(MissingError):
    """There is no such page or file. `status` is the server's, 404 for a file."""

    def __init__(self, url: str, status: int = 404) -> None:
        super().__init__(f"{shown(url)} is not there ({status})", remedy="look at the address in a browser")
        self.status = status


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """What an address holds; `url` is where it was found, redirects followed."""

    url: str
    kind: str
    charset: str | None
    body: bytes


def shown(url: str) -> str:
    """An address without the name and password that it may carry, fit for a terminal."""
    parts = urlsplit(url)
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in bare[:500])


def _session() -> requests.Session:
    session = requests.Session()
    session.headers["User-Agent"] = f"wheelmill/{__version__}"
    session.max_redirects = REDIRECTS
    # requests knows its own two variables; the rest of the tools here take this one.
    session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE") or True
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=RETRIES))
    return session


@dataclass(frozen=True, slots=True)
class Web:
    """A session, with a bound on what all its pages together may take: an index may lead to any number of them."""

    session: requests.Session = field(default_factory=_session)
    started: float = field(default_factory=time.monotonic)
    spent: list[int] = field(default_factory=lambda: [0])

    def get(self, url: str, *, limit: int, accept: str = "*/*") -> Page:
        """A page. Raises AbsentError where there is none, MissingError where it cannot be had."""
        if urlsplit(url).scheme == "file":
            return _file(url, limit)
        try:
            with self._response(url, {"Accept": accept}) as response:
                _refuse(response, url)
                body = b"".join(self._blocks(response, url, limit))
                self.spent[0] += len(body)
                kind, _, rest = response.headers.get("Content-Type", "").partition(";")
                charset = rest.partition("charset=")[2].strip("\"' ;") or None
                return Page(url=response.url, kind=kind.strip().lower(), charset=charset, body=body)
        except FAULTS as error:
            raise _unreachable(url, error) from error

    def open(self, url: str, *, limit: int) -> BinaryIO:
        """A file to read parts of, `limit` bytes at most in all. Raises MissingError where that cannot be done."""
        if urlsplit(url).scheme == "file":
            try:
                return _path(url).open("rb")
            except OSError as error:
                raise _unreachable(url, error) from error
        return cast("BinaryIO", io.BufferedReader(_Ranged(self, url, limit), buffer_size=BLOCK))

    def part(self, url: str, start: int, end: int) -> tuple[bytes, int]:
        """(the bytes from `start` to before `end`, the whole file's size); a negative start counts from the end."""
        span = f"bytes={start}-{end - 1}" if start >= 0 else f"bytes={start}"
        try:
            with self._response(url, {"Range": span, "Accept-Encoding": "identity"}) as response:
                _refuse(response, url)
                total = response.headers.get("Content-Range", "").rpartition("/")[2]
                if response.status_code != PARTIAL or not total.isdigit():
                    raise MissingError(
                        f"{urlsplit(url).hostname} gives no parts of files",
                        remedy="download the wheel and name its folder",
                    )
                wanted = end - start if start >= 0 else -start
                return b"".join(self._blocks(response, url, wanted)), int(total)
        except FAULTS as error:
            raise _unreachable(url, error) from error

    def _response(self, url: str, headers: Mapping[str, str]) -> Response:
        if self.spent[0] > TOTAL or time.monotonic() - self.started > SESSION:
            raise MissingError(
                f"more than {TOTAL:,} bytes or {SESSION} s of this index were read, so the rest was left",
                remedy="ask a smaller index, or one with records or PEP 658 metadata",
            )
        return self.session.get(url, headers=dict(headers), stream=True, timeout=(CONNECT, READ))

    def _blocks(self, response: Response, url: str, limit: int) -> list[bytes]:
        """The body, unless it is longer than `limit` or takes too long: a server may send for ever."""
        started, blocks, size = time.monotonic(), [], 0
        for block in response.iter_content(BLOCK):
            size += len(block)
            if size > limit or time.monotonic() - started > WHOLE:
                what = f"longer than {limit:,} bytes" if size > limit else f"not read in {WHOLE} s"
                raise MissingError(f"{shown(url)} is {what}, so it was left", remedy="check the address")
            blocks.append(block)
        return blocks


def _refuse(response: Response, url: str) -> None:
    if response.status_code in ABSENT:
        raise AbsentError(url, response.status_code)
    response.raise_for_status()


def _unreachable(url: str, error: Exception) -> MissingError:
    host = urlsplit(url).hostname or url
    why = SECRET.sub("//", " ".join(str(error).split()))[:300] or type(error).__name__
    return MissingError(
        f"{shown(url)} cannot be read: {why}",
        remedy=f"check the address and whether {shown(host)} can be reached from here",
    )


def _path(url: str) -> Path:
    return Path(unquote(urlsplit(url).path))


def _file(url: str, limit: int) -> Page:
    path = _path(url)
    try:
        with path.open("rb") as file:
            body = file.read(limit + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise AbsentError(url) from error
    except (OSError, ValueError) as error:
        raise _unreachable(url, error) from error
    if len(body) > limit:
        raise MissingError(f"{path} is longer than {limit:,} bytes, so it was left", remedy="check the path")
    kind = "application/vnd.pypi.simple.v1+json" if path.suffix == ".json" else "text/html"
    return Page(url=url, kind=kind, charset=None, body=body)


class _Ranged(io.RawIOBase):
    """A remote file by HTTP Range, read ahead by blocks. Reads no more than its limit, whatever the archive claims."""

    def __init__(self, web: Web, url: str, limit: int) -> None:
        self._web, self._url, self._left = web, url, limit
        self._tail, self._size = web.part(url, -BLOCK, 0)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        tail = self._size - len(self._tail)
        if self._at >= tail:
            data = self._tail[self._at - tail : end - tail]
        else:
            self._left -= end - self._at
            if self._left < 0:
                raise OSError("more of it would have to be fetched than is allowed")
            data, _ = self._web.part(self._url, self._at, end)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
