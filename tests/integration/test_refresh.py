"""`refresh` against servers on loopback: parts of wheels by HTTP Range, torch's index as HTML, faults, and a kill."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests import refresh_recorded

from wheelmill import facts
from wheelmill.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST = 8 << 20


class Handler(SimpleHTTPRequestHandler):
    """A simple index in PEP 691's JSON, and wheels in parts; the whole of a wheel is refused."""

    faults: dict[str, int | bytes]
    seen: list[str]
    pause: float

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.seen.append(self.path)
        time.sleep(self.pause)
        fault = next((value for part, value in self.faults.items() if part in self.path), None)
        path = Path(self.translate_path(self.path))
        span = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if isinstance(fault, int):
            self.answer(fault, b"", {})
        elif isinstance(fault, bytes):
            self.answer(200, fault, {"Content-Type": "application/vnd.pypi.simple.v1+json"})
        elif path.suffix == ".whl":
            data = path.read_bytes() if path.is_file() else b""
            if span is None or not data:
                self.answer(404 if not data else 500, b"", {})
                return
            first, last = span.groups()
            start = int(first) if first else max(0, len(data) - int(last))
            end = min(int(last) + 1, len(data)) if first else len(data)
            self.answer(206, data[start:end], {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"})
        elif (path / "index.json").is_file():
            body = (path / "index.json").read_bytes()
            self.answer(200, body, {"Content-Type": "application/vnd.pypi.simple.v1+json"})
        elif (path / "index.html").is_file():
            self.answer(200, (path / "index.html").read_bytes(), {"Content-Type": "text/html"})
        else:
            self.answer(404, b"", {})

    def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[type[Handler], list[str], Path]]:
    """(the handler, the options that name it, the folder of tables without torch 2.15 and CUDA 13.5)."""
    root, tables = tmp_path / "served", tmp_path / "tables"
    root.mkdir()
    refresh_recorded.lay_out(root)
    has = {"cpu": ("2.14.1", "2.15.0"), "cu130": ("2.14.1",), "cu132": ("2.14.1", "2.15.0")}
    names = [one["filename"] for one in refresh_recorded.pages()["torch"] if "x86_64" in one["filename"]]
    for tag, versions in has.items():
        links = [
            f'<a href="/w/{name.replace(version, f"{version}%2B{tag}", 1)}">{name}</a><br>'
            for name in names
            for version in versions
            if name.startswith(f"torch-{version}-")
        ]
        (root / "whl" / tag / "torch").mkdir(parents=True)
        (root / "whl" / tag / "torch" / "index.html").write_text(f"<!DOCTYPE html><html><body>{''.join(links)}")
    shutil.copytree(refresh_recorded.TABLES, tables)
    for table, head in (("torch", '["2.15"]'), ("cuda", "[cu135]")):
        file = tables / f"{table}.toml"
        file.write_text(file.read_text().partition(head)[0].rstrip() + "\n")
    handler = type("Here", (Handler,), {"faults": {}, "seen": [], "pause": 0.0})
    made = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(root)))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{made.server_port}"
    options = ["--pypi", f"{here}/simple", "--torch-index", f"{here}/whl/{{cuda}}", "--no-images"]
    yield handler, [*options, "--tables", str(tables)], tables
    made.shutdown()
    made.server_close()


def read(tables: Path) -> dict[str, bytes]:
    return {name: (tables / f"{name}.toml").read_bytes() for name in ("torch", "cuda")}


def test_new_releases_are_written_from_parts_of_wheels(
    server: tuple[type[Handler], list[str], Path], capsys: Any
) -> None:
    handler, options, tables = server
    before = read(tables)
    assert main(["refresh", *options, "--check"]) == 1
    assert read(tables) == before
    assert main(["refresh", *options]) == 0
    capsys.readouterr()
    made, by_hand = facts.load(tables=tables), facts.load(tables=refresh_recorded.TABLES)
    assert made.torch["2.15"].cuda == by_hand.torch["2.15"].cuda == ("cpu", "cu132")
    assert made.torch["2.15"].python == by_hand.torch["2.15"].python
    assert made.cuda["cu135"] == by_hand.cuda["cu135"]
    for name, old in before.items():
        assert (tables / f"{name}.toml").read_bytes().startswith(old.rstrip())
    # No row asked for a whole wheel: the server answers 500 to that, and every source was read.
    assert main(["refresh", *options, "--check"]) == 0
    assert "not read" not in capsys.readouterr().out
    assert any("torch-2.15.0" in path for path in handler.seen)


@pytest.mark.parametrize("fault", [500, 403, 429, b"<html>", b'{"files": 1}', b'{"meta": {"api-version": "9"}}'])
def test_a_source_that_fails_costs_its_own_rows_alone(
    server: tuple[type[Handler], list[str], Path], capsys: Any, fault: int | bytes
) -> None:
    handler, options, tables = server
    handler.faults["/simple/torch/"] = fault
    before = read(tables)
    assert main(["refresh", *options]) == 0
    said = capsys.readouterr().out
    assert "not read, its rows left: PyPI's page of torch" in said
    assert read(tables)["torch"] == before["torch"]
    assert "cu135" in facts.load(tables=tables).cuda


def test_an_index_that_fails_in_part_is_not_taken_in_part(
    server: tuple[type[Handler], list[str], Path], capsys: Any
) -> None:
    handler, options, tables = server
    handler.faults["/whl/cu132/"] = 503
    assert main(["refresh", *options]) == 0
    assert "not read, its rows left: torch's own index" in capsys.readouterr().out
    assert facts.load(tables=tables).torch["2.15"].cuda == ("cu132",)


def test_every_server_silent_is_told_by_the_exit_code(
    server: tuple[type[Handler], list[str], Path], capsys: Any
) -> None:
    handler, options, tables = server
    handler.faults["/"] = 403
    before = read(tables)
    assert main(["refresh", *options]) == 3
    assert "no server gave an answer" in capsys.readouterr().err
    assert read(tables) == before


@pytest.mark.parametrize("after", [0.6, 1.2, 1.8, 2.4, 3.0])
def test_a_kill_leaves_whole_tables(server: tuple[type[Handler], list[str], Path], after: float) -> None:
    handler, options, tables = server
    handler.pause = 0.02
    running = subprocess.Popen(
        [sys.executable, "-m", "wheelmill", "refresh", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    time.sleep(after)
    running.send_signal(signal.SIGKILL)
    running.wait()
    known = facts.load(tables=tables)
    assert set(facts.load(tables=refresh_recorded.TABLES).torch) - set(known.torch) <= {"2.15"}
    assert set(facts.load(tables=refresh_recorded.TABLES).cuda) - set(known.cuda) <= {"cu135"}
    handler.pause = 0.0
    assert main(["refresh", *options]) == 0
    assert "2.15" in facts.load(tables=tables).torch
