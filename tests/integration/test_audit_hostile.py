"""Archives made to harm whoever reads them: each ends in an error finding, in bounded time and memory."""

from __future__ import annotations

import base64
import hashlib
import json
import resource
import stat
import struct
import subprocess
import sys
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests import audit_wheels

from wheelmill import audit, facts, fatbin
from wheelmill.rules_plan import Expected

from .conftest import command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "demo-1.0-py3-none-manylinux_2_28_x86_64.whl"
INFO = "demo-1.0.dist-info"
METADATA = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
WHEEL = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_28_x86_64\n"
SECONDS, MEMORY = 10, 1 << 30
FUZZ = settings(
    max_examples=150,
    deadline=SECONDS * 1000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def packed(path: Path, members: dict[str, bytes], texts: dict[str, bytes] | None = None) -> Path:
    """A wheel of those members with a true RECORD, and the dist-info files replaced that `texts` names."""
    every = {**members, f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": WHEEL}
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for name, data in every.items()
    ]
    every[f"{INFO}/RECORD"] = "\n".join([*rows, f"{INFO}/RECORD,,", ""]).encode()
    every |= texts or {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in every.items():
            wheel.writestr(zipfile.ZipInfo(name), data)
    return path


def zeros(blocks: int) -> bytes:
    """The deflate of that many times 16 MiB of zeros."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = squeezer.compress(bytes(1 << 24)) + squeezer.flush(zlib.Z_FULL_FLUSH)
    return block * blocks + squeezer.flush()


def bomb(path: Path) -> None:
    """A member of 20 GB of zeros, and the directory says so."""
    raw(path, [(b"demo/zeros.bin", zeros(1200), 1200 << 24, 8)])


def quiet_bomb(path: Path) -> None:
    """The same deflate under a directory that says 100 bytes."""
    raw(path, [(b"demo/zeros.bin", zeros(1200), 100, 8)])


def overlapping(path: Path) -> None:
    """A thousand members that share one compressed body."""
    data = zlib.compress(bytes(1 << 20), 9)[2:-4]
    raw(path, [(b"a%d" % index, data, 1 << 20, 8) for index in range(1000)], share=True)


def millions(path: Path) -> None:
    raw(path, [(b"%07d" % index, b"", 0, 0) for index in range(1_200_000)], share=True)


def raw(path: Path, members: list[tuple[bytes, bytes, int, int]], *, share: bool = False) -> None:
    """A zip file written by hand: (name, compressed bytes, claimed size, method); with `share` one body for all."""
    body, directory, at = bytearray(), bytearray(), 0
    for name, data, size, method in members:
        crc = 0
        if not share or not body:
            at = len(body)
            body += struct.pack(
                "<4s5H3L2H", b"PK\3\4", 45, 0, method, 0, 33, crc, len(data), min(size, 0xFFFFFFFF), len(name), 0
            )
            body += name + data
        extra = struct.pack("<2HQ", 1, 8, size) if size > 0xFFFFFFFE else b""
        directory += struct.pack(
            "<4s4B4H3L5H2L",
            b"PK\1\2",
            45,
            3,
            45,
            0,
            0,
            method,
            0,
            33,
            crc,
            len(data),
            min(size, 0xFFFFFFFF),
            len(name),
            len(extra),
            0,
            0,
            0,
            0,
            at,
        )
        directory += name + extra
    count = min(len(members), 0xFFFF)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), len(body), 0)
    path.write_bytes(bytes(body + directory) + end)


def link(path: Path) -> None:
    packed(path, {})
    with zipfile.ZipFile(path, "a") as wheel:
        info = zipfile.ZipInfo("demo/link.so")
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        wheel.writestr(info, "/etc/passwd")


def named(name: str) -> Callable[[Path], object]:
    return lambda path: packed(path, {name: b"x"})


def with_texts(**texts: bytes) -> Callable[[Path], object]:
    return lambda path: packed(path, {"demo/a.py": b""}, {f"{INFO}/{name}": data for name, data in texts.items()})


def header(**fields: int) -> bytes:
    """An ELF header with nothing behind it."""
    said = {"phoff": 64, "shoff": 0, "phsize": 56, "phnum": 0, "shsize": 64, "shnum": 0, "names": 0, **fields}
    return (
        b"\x7fELF\2\1\1"
        + bytes(9)
        + struct.pack(
            "<HHIQQQIHHHHHH",
            3,
            62,
            1,
            0,
            said["phoff"],
            said["shoff"],
            0,
            64,
            said["phsize"],
            said["phnum"],
            said["shsize"],
            said["shnum"],
            said["names"],
        )
    )


def library(data: bytes) -> Callable[[Path], object]:
    return lambda path: packed(path, {"demo/libdemo.so": data})


def many_sections() -> bytes:
    """65,535 sections, each the whole file and full of text that looks like paths."""
    text = b"/home/a" * 10
    rows = 0xFF00
    names = struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 64, len(text) + 16, 0, 0, 1, 0)
    row = struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 0, 64 * rows, 0, 0, 1, 0)
    start = 64 + len(text) + 16
    return header(shoff=start, shnum=rows) + b"\0.rodata\0" + text + bytes(7) + names + row * (rows - 1)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "no zip": lambda path: path.write_bytes(b"#!/bin/sh\n" * 1000),
    "directory without file": lambda path: path.write_bytes(b"PK\5\6" + bytes(6) + b"\xff" * 10 + bytes(2)),
    "bomb": bomb,
    "quiet bomb": quiet_bomb,
    "overlapping": overlapping,
    "millions": millions,
    "climbing": named("../../evil.so"),
    "absolute": named("/evil.so"),
    "backslash": named("..\\evil.so"),
    "drive": named("C:/evil.so"),
    "escape": named("demo/\x1b[2J.so"),
    "link": link,
    "tags": with_texts(WHEEL=WHEEL + b"Tag: " + b".".join([b"a"] * 9999) + b"-" + b".".join([b"b"] * 9999) + b"-c\n"),
    "requirements": with_texts(METADATA=METADATA + b"Requires-Dist: a>>1\n" * 40_000),
    "digits": with_texts(METADATA=METADATA.replace(b"1.0\n", b"1" * 9000 + b"\n")),
    "headers": with_texts(METADATA=METADATA + b"A: b\n" * 200_000),
    "record": with_texts(RECORD=b'"' * 3_000_000),
    "record of numbers": with_texts(RECORD=b"demo/a.py,sha256=AA," + b"9" * 9000),
    "sbom": with_texts(**{"sboms/a.json": b"[" * 3_000_000}),
    "no elf": library(b"text"),
    "header alone": library(b"\x7fELF"),
    "segments outside": library(header(phoff=1 << 60, phnum=9)),
    "sections outside": library(header(shoff=1 << 60, shnum=9)),
    "names outside": library(header(shoff=64, shnum=1, names=7) + bytes(64)),
    "many sections": library(many_sections()),
    "segments of nothing": library(header(phnum=0xFFFF, phsize=0)),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the command line says of each hostile wheel, with its seconds and bytes of memory."""
    found = {}
    for name, make in HOSTILE.items():
        folder = tmp_path_factory.mktemp("hostile")
        path, temporary = folder / NAME, folder / "tmp"
        temporary.mkdir()
        make(path)
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *command("audit", "--json", path)[2:]],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=temporary,
            env={"TMPDIR": str(temporary), "PATH": ""},
        )
        found[name] = {
            "status": done.returncode,
            "used": json.loads(done.stderr.splitlines()[-1]) if done.stderr else {"memory": 0, "seconds": SECONDS},
            "left": [entry.name for entry in [*temporary.iterdir(), *folder.iterdir()]],
            "wheel": json.loads(done.stdout)["wheels"][0] if done.stdout else done.stderr,
        }
    return found


MEASURED = """
import resource, runpy, sys
sys.argv = sys.argv[1:]
try:
    runpy.run_module("wheelmill", run_name="__main__")
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime  # a wait for other processes is no hang
    print(f'{{"memory": {used.ru_maxrss * 1024}, "seconds": {seconds}}}', file=sys.stderr)
"""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_wheel_is_an_error_finding(results: dict[str, dict[str, Any]], name: str) -> None:
    result = results[name]
    assert result["status"] == 1, result["wheel"]
    errors = [one for one in result["wheel"]["findings"] if one["severity"] == "error"]
    assert errors
    assert result["wheel"]["verdict"] == "fail"
    assert result["used"]["seconds"] < SECONDS
    assert 0 < result["used"]["memory"] < MEMORY
    assert sorted(result["left"]) == sorted([NAME, "tmp"])
    assert not any(letter < " " for one in errors for letter in one["message"])


def test_other_wheels_go_on(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad" / NAME, tmp_path / "good" / NAME
    bad.parent.mkdir()
    good.parent.mkdir()
    bad.write_bytes(b"PK")
    packed(good, {"demo/a.py": b""})
    done = subprocess.run(command("audit", "--json", bad, good), capture_output=True, text=True, check=False)
    assert [wheel["verdict"] for wheel in json.loads(done.stdout)["wheels"]] == ["fail", "pass"]
    assert done.returncode == 1


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    maker = audit_wheels.Maker(tmp_path_factory.mktemp("fuzz"))
    return maker.library({"text": "/home/somebody/demo.cu", "flags": ["-Wl,-rpath,$ORIGIN"]})


Edits = list[tuple[float, bytes]]
EDITS = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=8)), max_size=12)
EXPECTED = Expected(facts=facts.load())


def edited(data: bytes, edits: Edits, cut: float) -> bytes:
    changed = bytearray(data)
    for place, value in edits:
        at = int(place * len(changed))
        changed[at : at + len(value)] = value
    return bytes(changed[: int(cut * len(changed))])


def read(path: Path) -> audit.Report:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = audit.audit(path, EXPECTED)
    assert audit.to_json([report])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY // 1024
    return report


@FUZZ
@given(edits=EDITS, cut=st.floats(0, 1))
@example(edits=[], cut=1.0)
def test_a_damaged_wheel_is_reported(sound: bytes, tmp_path: Path, edits: Edits, cut: float) -> None:
    whole = packed(tmp_path / NAME, {"demo/libdemo.so": sound, "demo/a.py": b"x"}).read_bytes()
    data = edited(whole, edits, cut)
    (tmp_path / NAME).write_bytes(data)
    report = read(tmp_path / NAME)
    if data[: len(whole)] != whole and not report.facts.libraries:
        assert report.verdict == "fail"


@FUZZ
@given(edits=EDITS, cut=st.floats(0, 1))
@example(edits=[], cut=1.0)
def test_a_damaged_library_is_reported(sound: bytes, tmp_path: Path, edits: Edits, cut: float) -> None:
    data = edited(sound, edits, cut)
    report = read(packed(tmp_path / NAME, {"demo/libdemo.so": data}))
    assert report.facts.libraries or report.verdict == "fail"


@FUZZ
@given(edits=EDITS, cut=st.floats(0, 1))
def test_a_damaged_header_is_reported(sound: bytes, tmp_path: Path, edits: Edits, cut: float) -> None:
    """Edits in the first 4 kB: headers, hash tables, names."""
    data = edited(sound[:4096], edits, 1.0) + edited(sound[4096:], [], cut)
    report = read(packed(tmp_path / NAME, {"demo/libdemo.so": data}))
    assert report.facts.libraries or report.verdict == "fail"


@FUZZ
@given(edits=EDITS, cut=st.floats(0, 1))
def test_a_damaged_fatbin_is_refused_or_read(edits: Edits, cut: float) -> None:
    data = audit_wheels.fatbin_of(["80", "90a", "100f"], ["90", "120"], "9.0") + bytes(64)
    data = edited(data, edits, cut)
    try:
        found = list(fatbin.entries(data, 0, len(data)))
    except (ValueError, struct.error):
        return
    assert len(found) <= len(data) // fatbin.ENTRY_MINIMUM


@FUZZ
@given(
    texts=st.fixed_dictionaries(
        {}, optional={name: st.binary(max_size=400) for name in ("METADATA", "WHEEL", "RECORD")}
    )
)
@example(texts={"METADATA": METADATA + b"Requires-Dist: torch\xff>=2\n"})
@example(texts={"RECORD": b"demo/a.py,sha256=\xc3\xa9,1\n"})
def test_any_text_in_the_dist_info_folder_is_reported(tmp_path: Path, texts: dict[str, bytes]) -> None:
    members = {f"{INFO}/{name}": data for name, data in texts.items()}
    read(packed(tmp_path / NAME, {"demo/a.py": b""}, members))


def test_a_section_of_nothing_but_entries_has_an_end() -> None:
    entry = audit_wheels.entry(fatbin.SASS, "80", "9.0")
    body = entry * (fatbin.ENTRIES + 1)
    data = fatbin.HEADER.pack(fatbin.MAGIC, 1, fatbin.HEADER.size, len(body)) + body
    with pytest.raises(ValueError, match="more than"):
        list(fatbin.entries(data, 0, len(data)))
