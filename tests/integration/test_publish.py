"""`wheelmill publish` to a folder and to a real S3 API server on loopback: kills, rivals, locks and refusals."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from tests import index_wheels

from wheelmill.__main__ import main
from wheelmill.store import file_sha256

from . import s3_server
from .conftest import command, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MATRIX = 'version: 1\ntorch: ">=2.11"\ncuda: [cu130, cpu]\n'
LOCK = ".wheelmill.lock"
FILE = "demo-1.0+cu130-py3-none-manylinux_2_28_x86_64.whl"


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Mill = Callable[..., Done]


@pytest.fixture
def mill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mill:
    """Runs a verb in an empty folder, in this process (s3fs loads slowly); keywords change its environment."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path, **changes: str | None) -> Done:
        with monkeypatch.context() as patch:
            for name, value in changes.items():
                if value is None:
                    patch.delenv(name, raising=False)
                else:
                    patch.setenv(name, value)
            capsys.readouterr()
            code = main(list(map(str, arguments)))
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server.serving(tmp_path_factory.mktemp("s3") / "log", **s3_server.CREDENTIALS) as address:
        yield address


@pytest.fixture
def bucket(endpoint: str, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:60]
    s3_server.bucket(endpoint, name)
    return name


def add(dist: Path, version: str, place: str, **options: Any) -> Path:
    """A wheel that passed audit and cover."""
    wheel = index_wheels.add(dist, version, [place], **options)
    cuda, _, torch = place.partition("-torch")
    cell = {"cuda": cuda, "torch": torch, "python": "3.12", "unclaimed": None, "result": "pass"}
    index_wheels.beside(wheel, ".cover.json", {"version": 1, "sha256": file_sha256(wheel), "cells": [cell]})
    return wheel


@pytest.fixture
def site(tmp_path: Path, mill: Mill) -> Path:
    """An index of one wheel; its folder of wheels is dist/."""
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    add(tmp_path / "dist", "1.0+cu130", "cu130-torch2.11")
    return indexed(mill, tmp_path, "dist", "site")


def indexed(mill: Mill, folder: Path, dist: str, site: str) -> Path:
    done = mill("index", dist, "--out", site)
    assert done.returncode == 0, done.stderr
    return folder / site


def publish(mill: Mill, endpoint: str, *arguments: str, **changes: str | None) -> Done:
    return mill("publish", "site", "--endpoint", endpoint, *arguments, **{**s3_server.CREDENTIALS, **changes})


def links(endpoint: str, bucket: str) -> set[str]:
    """Every file that a page of the index links to; each is fetched and has the hash that its link states."""
    found = set()
    for path in s3_server.objects(endpoint, bucket):
        if not path.endswith((".html", "index.json")):
            continue
        page = f"{endpoint}/{bucket}/{path}"
        status, content = s3_server.fetched(page)
        assert status == 200
        text = content.decode()
        pairs = re.findall(r'href="([^"]+)"', text) if path.endswith(".html") else []
        if path.endswith("index.json"):
            pairs = [f"{one['url']}#sha256={one['hashes']['sha256']}" for one in json.loads(text).get("files", ())]
        for link in pairs:
            url, fragment = urldefrag(urljoin(page, link))
            if "/files/" not in url:
                continue
            status, content = s3_server.fetched(url)
            assert status == 200, f"{path} links to {link}, which is not there"
            assert fragment in {"", f"sha256={index_wheels.hashlib.sha256(content).hexdigest()}"}
            if url.endswith(".whl"):  # beside it, pages for people link its METADATA, record and signature
                found.add(unquote(url.rpartition("/")[2]))
    return found


def test_a_bucket_gets_what_the_site_has_with_types_and_ages(
    mill: Mill, site: Path, endpoint: str, bucket: str
) -> None:
    done = publish(mill, endpoint, "--to", f"s3://{bucket}/pre/fix", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["new"] == [FILE]
    there = s3_server.objects(endpoint, bucket, "pre/fix/")
    here = index_wheels.tree(site)
    assert there.keys() == here.keys()
    for path, content in here.items():
        assert s3_server.content(endpoint, bucket, f"pre/fix/{path}") == content
    wheel, page = there[f"files/{FILE}"], there["simple/demo/index.json"]
    assert (wheel["ContentType"], wheel["CacheControl"]) == (
        "application/octet-stream",
        "public, max-age=31536000, immutable",
    )
    assert (page["ContentType"], page["CacheControl"]) == (
        "application/vnd.pypi.simple.v1+json",
        "public, max-age=60",
    )
    assert there["index.html"]["ContentType"] == "text/html; charset=utf-8"
    again = publish(mill, endpoint, "--to", f"s3://{bucket}/pre/fix")
    assert again.returncode == 0, again.stderr
    assert "as it was: 1" in again.stdout
    times = {path: one["LastModified"] for path, one in s3_server.objects(endpoint, bucket, "pre/fix/").items()}
    assert times == {path: one["LastModified"] for path, one in there.items()}


def test_pip_installs_from_the_bucket(mill: Mill, site: Path, tmp_path: Path, endpoint: str, bucket: str) -> None:
    assert publish(mill, endpoint, "--to", f"s3://{bucket}").returncode == 0
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-index", "--no-cache-dir", "-q", "-d", "got"]
    page = f"{endpoint}/{bucket}/cu130-torch2.11.html"
    subprocess.run(
        [*pip, "demo", "--find-links", page], cwd=tmp_path, check=True, env=environment(PIP_CONFIG_FILE="/dev/null")
    )
    assert file_sha256(tmp_path / "got" / FILE) == file_sha256(site / "files" / FILE)


def test_two_runs_at_once_lose_nothing(mill: Mill, site: Path, tmp_path: Path, endpoint: str, bucket: str) -> None:
    add(tmp_path / "dist2", "1.0+cpu", "cpu-torch2.11")
    add(tmp_path / "dist3", "2.0", "cpu-torch2.12", project="other")
    sites = ["site", indexed(mill, tmp_path, "dist2", "site2"), indexed(mill, tmp_path, "dist3", "site3")]
    runs = [
        subprocess.Popen(
            command("publish", one, "--to", f"s3://{bucket}", "--endpoint", endpoint),
            cwd=tmp_path, env=environment(**s3_server.CREDENTIALS), stderr=subprocess.PIPE, text=True,
        )
        for one in sites
    ]  # fmt: skip
    said = [run.communicate(timeout=60)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], said
    wheels = {path.name for folder in ("dist", "dist2", "dist3") for path in (tmp_path / folder).glob("*.whl")}
    assert links(endpoint, bucket) == wheels
    assert {"cpu-torch2.11.html", "cpu-torch2.12.html", "cu130-torch2.11.html"} <= s3_server.objects(
        endpoint, bucket
    ).keys()
    assert LOCK not in s3_server.objects(endpoint, bucket)


def test_a_killed_run_leaves_sound_pages_and_the_next_one_completes(
    mill: Mill, site: Path, tmp_path: Path, endpoint: str, bucket: str
) -> None:
    assert publish(mill, endpoint, "--to", f"s3://{bucket}").returncode == 0
    before = links(endpoint, bucket)
    new = add(tmp_path / "dist", "1.1+cu130", "cu130-torch2.11")
    indexed(mill, tmp_path, "dist", "site")
    reached, never = threading.Event(), threading.Event()

    def stall(method: str, path: str, headers: dict[str, str]) -> dict[str, str]:
        if method == "PUT" and path.partition("?")[0].endswith(".html"):
            reached.set()
            never.wait()
        return headers

    with s3_server.proxy(endpoint, stall) as slow:
        run = subprocess.Popen(
            command("publish", "site", "--to", f"s3://{bucket}", "--endpoint", slow, "--lease", "2"),
            cwd=tmp_path, env=environment(**s3_server.CREDENTIALS),
        )  # fmt: skip
        assert reached.wait(60)
        run.send_signal(signal.SIGKILL)
        run.wait()
        there = s3_server.objects(endpoint, bucket)
        assert {f"files/{new.name}", LOCK} <= there.keys()
        assert links(endpoint, bucket) >= before
        done = publish(mill, endpoint, "--to", f"s3://{bucket}")
        never.set()
    assert done.returncode == 0, done.stderr
    assert re.search(r"took over the lock of .*, silent for \d+ s", done.stderr)
    after = s3_server.objects(endpoint, bucket)
    assert links(endpoint, bucket) == {*before, new.name}
    assert after[f"files/{new.name}"]["LastModified"] == there[f"files/{new.name}"]["LastModified"]
    assert after.keys() == index_wheels.tree(site).keys()


def test_a_run_that_is_alive_is_waited_for(mill: Mill, site: Path, endpoint: str, bucket: str) -> None:
    s3_server.client(endpoint).put_object(
        Bucket=bucket, Key=LOCK, Body=b"{}",
        Metadata={"owner": "somebody@else", "since": "2026-01-02T03:04:05Z", "seconds": "600", "token": "x"},
    )  # fmt: skip
    done = publish(mill, endpoint, "--to", f"s3://{bucket}", "--wait", "0")
    assert done.returncode == 3
    assert "somebody@else has been writing this index since 2026-01-02T03:04:05Z" in done.stderr
    assert "its lock is free 600 s after its last sign of life" in done.stderr
    assert s3_server.objects(endpoint, bucket).keys() == {LOCK}


def test_a_server_without_conditional_writes_is_found_out(
    mill: Mill, site: Path, tmp_path: Path, endpoint: str, bucket: str
) -> None:
    with s3_server.proxy(endpoint, s3_server.without_if_match) as half:
        assert publish(mill, half, "--to", f"s3://{bucket}").returncode == 3
    with s3_server.proxy(endpoint, s3_server.without_conditions) as plain:
        done = publish(mill, plain, "--to", f"s3://{bucket}")
        assert done.returncode == 3
        assert "does not keep conditional writes" in done.stderr
        assert "--single-publisher" in done.stderr
        assert s3_server.objects(endpoint, bucket) == {}
        done = publish(mill, plain, "--to", f"s3://{bucket}", "--single-publisher")
        assert done.returncode == 0, done.stderr
        assert s3_server.objects(endpoint, bucket).keys() == index_wheels.tree(site).keys()
        rebuilt(tmp_path, mill)
        done = publish(mill, plain, "--to", f"s3://{bucket}", "--single-publisher")
    assert done.returncode == 1
    assert "a file of that name is published with SHA-256" in done.stderr


def rebuilt(folder: Path, mill: Mill) -> None:
    """The same file name with other bytes."""
    add(folder / "dist", "1.0+cu130", "cu130-torch2.11", requires=("torch>=2.11",))
    assert mill("index", "dist", "--out", "site", "--full").returncode == 0


def test_refusals_are_told_at_once_and_nothing_is_sent(
    mill: Mill, site: Path, tmp_path: Path, endpoint: str, bucket: str
) -> None:
    assert publish(mill, endpoint, "--to", f"s3://{bucket}").returncode == 0
    before = {path: one["ETag"] for path, one in s3_server.objects(endpoint, bucket).items()}
    rebuilt(tmp_path, mill)
    index_wheels.add(tmp_path / "dist", "0.9+cpu", ["cpu-torch2.11"])
    indexed(mill, tmp_path, "dist", "site")
    done = publish(mill, endpoint, "--to", f"s3://{bucket}", "--json")
    assert done.returncode == 1
    rules = [(one["subject"], one["rule"]) for one in json.loads(done.stdout)["refused"]]
    old = "demo-0.9+cpu-py3-none-manylinux_2_28_x86_64.whl"
    assert rules == [(old, "downgrade"), (old, "gates"), (FILE, "overwrite")]
    assert {path: one["ETag"] for path, one in s3_server.objects(endpoint, bucket).items()} == before


def test_yanks_and_removals_go_there_and_files_stay_for_the_grace_period(
    mill: Mill, site: Path, tmp_path: Path, endpoint: str, bucket: str
) -> None:
    add(tmp_path / "dist", "1.1+cu130", "cu130-torch2.11")
    indexed(mill, tmp_path, "dist", "site")
    assert publish(mill, endpoint, "--to", f"s3://{bucket}").returncode == 0
    assert mill("index", "--out", "site", "--yank", f"{FILE}=it crashes").returncode == 0
    done = publish(mill, endpoint, "--to", f"s3://{bucket}", "--json")
    assert json.loads(done.stdout)["changed"] == [FILE]
    rows = json.loads(s3_server.content(endpoint, bucket, "simple/demo/index.json"))["files"]
    assert [one["yanked"] for one in rows if one["filename"] == FILE] == ["it crashes"]
    for path in (tmp_path / "dist").glob(f"{FILE}*"):
        path.unlink()
    indexed(mill, tmp_path, "dist", "site")
    done = publish(mill, endpoint, "--to", f"s3://{bucket}", "--exactly", "--json")
    assert json.loads(done.stdout)["removed"] == [FILE], done.stderr
    assert FILE not in links(endpoint, bucket)
    assert f"files/{FILE}" in s3_server.objects(endpoint, bucket)
    done = publish(mill, endpoint, "--to", f"s3://{bucket}", "--exactly", "--grace", "0d", "--json")
    assert json.loads(done.stdout)["expired"] == [FILE], done.stderr
    assert not [path for path in s3_server.objects(endpoint, bucket) if FILE in path]


def test_what_is_wrong_with_the_server_is_told_without_secrets(
    mill: Mill, site: Path, tmp_path: Path, endpoint: str
) -> None:
    absent = publish(mill, endpoint, "--to", "s3://no-such-bucket")
    assert absent.returncode == 3
    assert "there is no bucket for s3://no-such-bucket/" in absent.stderr
    nobody = publish(mill, endpoint, "--to", "s3://no-such-bucket", AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None)
    assert nobody.returncode == 3
    assert "there are no credentials" in nobody.stderr
    # Four calls set the server up; from then on it asks who calls and what he may do.
    with s3_server.serving(
        tmp_path / "log", **{**s3_server.CREDENTIALS, "INITIAL_NO_AUTH_ACTION_COUNT": "4"}
    ) as strict:
        s3_server.bucket(strict, "wheels")
        iam = s3_server.client(strict, "iam")
        iam.create_user(UserName="reader")
        key = iam.create_access_key(UserName="reader")["AccessKey"]
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:Get*", "Resource": "*"}]}
        iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=json.dumps(policy))
        wrong = publish(mill, strict, "--to", "s3://wheels")
        secret = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        forbidden = publish(mill, strict, "--to", "s3://wheels", **secret)
    assert wrong.returncode == 3
    assert "does not take these credentials" in wrong.stderr
    assert forbidden.returncode == 3
    assert "may not do this" in forbidden.stderr
    assert "s3:PutObject" in forbidden.stderr
    for done in (absent, nobody, wrong, forbidden):
        assert "Traceback" not in done.stderr
        assert s3_server.CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in done.stderr + done.stdout
        assert key["SecretAccessKey"] not in done.stderr + done.stdout


def test_a_large_wheel_goes_in_parts_and_never_over_another(tmp_path: Path, endpoint: str, bucket: str) -> None:
    script = """
import sys
from pathlib import Path
from wheelmill.errors import GateError
from wheelmill.storage_open import open_storage
from wheelmill.store import file_sha256
sent = []
storage = open_storage(sys.argv[1], endpoint=sys.argv[2], sent=sent.append)
first, second = Path("first.whl"), Path("second.whl")
with storage.lock():
    storage.put("files/big.whl", first, file_sha256(first))
    assert len(sent) > 2 and sum(sent) == first.stat().st_size, sent
    storage.put("files/big.whl", first, file_sha256(first))
    assert sum(sent) == first.stat().st_size, sent
    try:
        storage.put("files/big.whl", second, file_sha256(second))
    except GateError as error:
        assert "published already with other bytes" in str(error)
    else:
        raise AssertionError("it was overwritten")
assert storage.size("files/big.whl") == first.stat().st_size
"""
    for name, byte in (("first", b"a"), ("second", b"b")):
        (tmp_path / f"{name}.whl").write_bytes(byte * (40 << 20))
    subprocess.run(
        [sys.executable, "-c", script, f"s3://{bucket}", endpoint],
        cwd=tmp_path, env=environment(**s3_server.CREDENTIALS), check=True,
    )  # fmt: skip
    assert s3_server.objects(endpoint, bucket).keys() == {"files/big.whl"}


def test_new_wheels_are_signed_and_ssh_keygen_agrees(mill: Mill, site: Path, tmp_path: Path) -> None:
    assert mill("key", "new", "key").returncode == 0
    secret = (tmp_path / "key").read_text()
    done = mill("publish", "site", "--to", "out", "--sign", "env:SECRET", "--json", SECRET=secret)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["signed"] == [FILE]
    assert secret.splitlines()[1] not in done.stdout + done.stderr
    (tmp_path / "allowed").write_text(f"wheelmill {(tmp_path / 'key.pub').read_text()}")
    check = "sha256sum {} | ssh-keygen -Y verify -f ../../allowed -I wheelmill -n wheelmill -s {}.sig"
    out = tmp_path / "out" / "files"
    subprocess.run(["sh", "-ec", check.format(FILE, FILE)], cwd=out, check=True)
    verified = mill("key", "verify", "--key", "key.pub", f"out/files/{FILE}")
    assert (verified.returncode, verified.stdout.count("signed by key SHA256:")) == (0, 1)
    record = json.loads((out / f"{FILE}.record.json").read_text())
    assert record["vouched"][0] in verified.stdout
    (site / "files" / f"{FILE}.sig").write_bytes((out / f"{FILE}.sig").read_bytes().replace(b"U1NI", b"U1NJ"))
    refused = mill("publish", "site", "--to", "out")
    assert refused.returncode == 1
    assert "signature WRONG" in refused.stderr


def test_what_ssh_keygen_signs_is_verified(mill: Mill, site: Path, tmp_path: Path) -> None:
    assert site
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "mine"], cwd=tmp_path, check=True)
    sign = f"sha256sum {FILE} | ssh-keygen -Y sign -f ../mine -n wheelmill > {FILE}.sig"
    subprocess.run(["sh", "-ec", sign], cwd=tmp_path / "dist", check=True)
    done = mill("key", "verify", "--key", "mine.pub", f"dist/{FILE}")
    assert done.returncode == 0, done.stderr
    assert mill("key", "verify", "--identity", "github:a/b", f"dist/{FILE}").returncode == 1
    indexed(mill, tmp_path, "dist", "site")
    assert (tmp_path / "site" / "files" / f"{FILE}.sig").exists()
    (tmp_path / "dist" / FILE).with_name(FILE + ".sig").write_text("none")
    done = mill("index", "dist", "--out", "site")
    assert done.returncode == 1
    assert "signature WRONG" in done.stderr


def test_a_killed_copy_into_a_folder_is_completed(mill: Mill, site: Path, tmp_path: Path) -> None:
    assert mill("publish", "site", "--to", "out").returncode == 0
    add(tmp_path / "dist", "1.1+cu130", "cu130-torch2.11")
    indexed(mill, tmp_path, "dist", "site")
    script = """
import os, signal, sys
from wheelmill import store
real = store.write_atomic
def kill(path, data):
    if path.suffix == ".html":
        os.kill(os.getpid(), signal.SIGKILL)
    real(path, data)
import wheelmill.storage
wheelmill.storage.write_atomic = kill
from wheelmill.__main__ import main
main(["publish", "site", "--to", "out"])
"""
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    assert run.returncode == -signal.SIGKILL
    started = time.monotonic()
    done = mill("publish", "site", "--to", "out")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started < 30
    assert index_wheels.tree(tmp_path / "out") == index_wheels.tree(site)
