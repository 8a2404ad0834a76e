"""A real S3 API server on loopback, and a proxy before it that drops conditions or keeps a request waiting."""

from __future__ import annotations

import contextlib
import functools
import http.client
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LOOPBACK = "127.0.0.1"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "a secret that is never printed",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}


@contextlib.contextmanager
def serving(log: Path, **environment: str) -> Iterator[str]:
    """A server as a process of its own; its endpoint."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", "0"],
            stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **environment},
        )  # fmt: skip
        try:
            yield _endpoint(log, process)
        finally:
            process.kill()
            process.wait()


def _endpoint(log: Path, process: subprocess.Popen[bytes]) -> str:
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        for line in log.read_text(errors="replace").splitlines():
            if " on http://" in line:
                return line.rpartition(" ")[2].strip()
        time.sleep(0.05)
    raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')}")


@functools.cache
def client(endpoint: str, service: str = "s3") -> Any:
    import boto3

    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="tester",
        aws_secret_access_key="x",  # noqa: S106
    )


def bucket(endpoint: str, name: str) -> str:
    client(endpoint).create_bucket(Bucket=name, ACL="public-read")
    return f"s3://{name}"


def objects(endpoint: str, name: str, prefix: str = "") -> dict[str, dict[str, Any]]:
    """Every object under a prefix, by its path there, with its headers."""
    s3 = client(endpoint)
    found = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name, Prefix=prefix):
        for one in page.get("Contents", ()):
            found[one["Key"].removeprefix(prefix)] = s3.head_object(Bucket=name, Key=one["Key"])
    return found


def content(endpoint: str, name: str, key: str) -> bytes:
    body: bytes = client(endpoint).get_object(Bucket=name, Key=key)["Body"].read()
    return body


class _Handler(BaseHTTPRequestHandler):
    """Hands each request on. The server's `change` may change its headers, or keep it waiting."""

    protocol_version = "HTTP/1.1"
    server: _Proxy

    def _hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = self.server.change(self.command, self.path, dict(self.headers.items()))
        connection = http.client.HTTPConnection(self.server.target, timeout=30)
        try:
            connection.request(self.command, self.path, body=body, headers=headers)
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"transfer-encoding", "connection", "content-length", "date", "server"}:
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(said))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _hand_on  # noqa: N815, http.server's names

    def log_message(self, *_: object) -> None:
        pass


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, target: str, change: Callable[[str, str, dict[str, str]], dict[str, str]]) -> None:
        super().__init__((LOOPBACK, 0), _Handler)
        self.target, self.change = target, change

    def handle_error(self, *_: object) -> None:
        """A client that was killed is what the tests are about."""


@contextlib.contextmanager
def proxy(endpoint: str, change: Callable[[str, str, dict[str, str]], dict[str, str]]) -> Iterator[str]:
    """A proxy before a server; its endpoint."""
    server = _Proxy(endpoint.removeprefix("http://"), change)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def without_conditions(_: str, __: str, headers: dict[str, str]) -> dict[str, str]:
    """As servers do that do not know of conditional writes."""
    return {name: value for name, value in headers.items() if name.lower() not in {"if-none-match", "if-match"}}


def without_if_match(_: str, __: str, headers: dict[str, str]) -> dict[str, str]:
    """As servers do that know of one condition and not of the other."""
    return {name: value for name, value in headers.items() if name.lower() != "if-match"}


def fetched(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310, loopback
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""
