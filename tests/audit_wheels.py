"""Tiny wheels for the audit, made from a few words: C compiled on the spot, device code of headers alone, a packer.

What a wheel's file in tests/projects/audit may say is in `BASE` and `LIBRARY`; a key there replaces the one here.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import struct
import subprocess
import sys
import warnings
import zipfile
from email.message import Message
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from wheelmill import fatbin

if TYPE_CHECKING:
    from collections.abc import Callable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FAULTS = Path(__file__).parent / "projects" / "audit"
# A wheel with nothing to find: torch's stable ABI, CUDA 13, no CPython, an SBOM.
LIBRARY = {
    "path": "demo/libdemo.so",
    "calls": ["aoti_torch_get_dim", "memcpy"],  # undefined symbols
    "text": "demo",  # a string in its read-only data
    "needs": ["libtorch_cpu.so", "libcudart.so.13"],  # made on the spot, empty but for `cudaFree`
    "newest": "",  # a version of the C library that it asks for, as GLIBC_2.38
    "flags": [],  # more of the linker's
    "sass": ["80", "90"],
    "ptx": ["90"],
    "also": [],  # the SASS of further units
    "isa": "9.0",
    "damage": "",  # how its bytes are changed afterwards
}
BASE = {
    "project": "demo",
    "version": "1.0+cu130",
    "tag": "py3-none-manylinux_2_28_x86_64",
    "filename": "",
    "metadata": {},  # headers in place of the right ones; an empty one is left out
    "requires": ["torch>=2.10"],
    "wheel": {},
    "libraries": [{}],
    "files": {},  # more members, with their text
    "leave_out": [],  # members that are not packed, though RECORD lists them
    "unlisted": [],  # members that RECORD does not list
    "record": {},  # hashes in RECORD in place of the right ones
    "sbom": True,
    "damage": "",
}
SUFFIXES = {"": 0, "a": fatbin.ARCHITECTURE_SPECIFIC, "f": fatbin.FAMILY}


def load(rule: str) -> dict[str, Any]:
    """The planted fault of a rule: `wheel`, its clean `twin`, and what they are held against."""
    return tomllib.loads((FAULTS / f"{rule}.toml").read_text(encoding="utf-8"))


def entry(kind: int, target: str, isa: str) -> bytes:
    """A fatbin's entry for a target such as `90a`, with a payload that is no code."""
    number = target.rstrip("af")
    header = bytearray(fatbin.ENTRY_MINIMUM)
    major, minor = map(int, isa.split(".")) if kind == fatbin.PTX else (1, 7)
    fatbin.ENTRY.pack_into(
        header, 0, kind, 0x0101, len(header), 8, minor, major, int(number), SUFFIXES[target[len(number) :]]
    )
    return bytes(header) + b"no code."


def fatbin_of(sass: list[str], ptx: list[str], isa: str) -> bytes:
    body = b"".join(entry(fatbin.SASS, one, isa) for one in sass)
    body += b"".join(entry(fatbin.PTX, one, isa) for one in ptx)
    return fatbin.HEADER.pack(fatbin.MAGIC, 1, fatbin.HEADER.size, len(body)) + body if body else b""


class Maker:
    """Makes wheels in a folder. Needs gcc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def _gcc(self, *arguments: str | Path) -> None:
        subprocess.run(["gcc", "-O1", "-fPIC", "-shared", *map(str, arguments)], check=True, cwd=self.folder)

    def stub(self, soname: str, symbols: tuple[str, ...] = (), version: str = "") -> Path:
        """A library of that name which offers `symbols`, under `version` where one is given."""
        path = self.folder / "stubs" / (version or "plain") / soname
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            source = path.with_suffix(".c")
            source.write_text("".join(f"void {symbol}(void) {{}}\n" for symbol in symbols) or "int empty;\n")
            script = path.with_suffix(".map")
            script.write_text(f"{version} {{ global: *; }};\n")
            flags = [f"-Wl,--version-script={script}"] if version else []
            self._gcc("-nostdlib", f"-Wl,-soname,{soname}", *flags, source, "-o", path)
        return path

    def library(self, words: dict[str, Any]) -> bytes:
        """The bytes of a library that those words describe."""
        said = {**LIBRARY, **words}
        self.count += 1
        work = self.folder / str(self.count)
        work.mkdir()
        calls = list(said["calls"])
        needs = [self._needed(name) for name in said["needs"]]
        if any("libcudart" in name for name in said["needs"]):
            calls.append("cudaFree")
        lines = [f'extern void f{index}(void) __asm__("{name}");' for index, name in enumerate(calls)]
        body = " ".join(f"f{index}();" for index in range(len(calls)))
        text = f'const char *demo_text(void) {{ return "{said["text"]}"; }}'
        lines += [text, f"void demo_run(void) {{ {body} }}"]
        flags = list(said["flags"])
        if said["newest"]:
            needs.insert(0, self.stub("libc.so.6", ("fancy",), said["newest"]))
            lines.append("extern void fancy(void); void demo_newest(void) { fancy(); }")
            flags.append("-nostdlib")
        (work / "demo.c").write_text("\n".join(lines) + "\n")
        units = [fatbin_of(said["sass"], said["ptx"], said["isa"]), *(fatbin_of(one, [], "") for one in said["also"])]
        (work / "code.fatbin").write_bytes(b"".join(units))
        (work / "code.s").write_text(
            '.section .nv_fatbin,"a"\n.balign 8\n'
            f'.incbin "{work / "code.fatbin"}"\n.section .note.GNU-stack,"",@progbits\n'
        )
        out = work / "library.so"
        soname = f"-Wl,-soname,{Path(said['path']).name}"
        self._gcc(
            soname, "demo.c" and work / "demo.c", work / "code.s", "-Wl,--no-as-needed", *needs, *flags, "-o", out
        )
        data = out.read_bytes()
        return LIBRARY_DAMAGE[said["damage"]](data) if said["damage"] else data

    def _needed(self, name: str) -> Path:
        version = f"libcudart.so.{name.partition('.so.')[2]}" if "libcudart" in name else ""
        return self.stub(name, ("cudaFree",) if version else (), version)

    def wheel(self, words: dict[str, Any]) -> Path:
        """The wheel that those words describe, in a folder of its own."""
        said = {**BASE, **words}
        info = f"{said['project']}-{said['version']}.dist-info"
        members: list[tuple[str, bytes]] = [("demo/__init__.py", b"import ctypes\n")]
        members += [({**LIBRARY, **library}["path"], self.library(library)) for library in said["libraries"]]
        members += [(name, text.encode()) for name, text in said["files"].items()]
        members.append((f"{info}/METADATA", self._metadata(said)))
        members.append((f"{info}/WHEEL", self._wheel(said)))
        if said["sbom"]:
            members.append((f"{info}/sboms/demo.cdx.json", b'{"bomFormat": "CycloneDX"}'))
        record = self._record(said, members, f"{info}/RECORD")
        members = [(name, data) for name, data in members if name.replace(info, "INFO") not in said["leave_out"]]
        members.append((f"{info}/RECORD", record))
        self.count += 1
        path = self.folder / str(self.count) / (said["filename"] or f"demo-{said['version']}-{said['tag']}.whl")
        path.parent.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # duplicates are meant
            pack(path, members, twice=said["damage"] == "twice")
        if said["damage"] in WHEEL_DAMAGE:
            path.write_bytes(WHEEL_DAMAGE[said["damage"]](path.read_bytes()))
        return path

    @staticmethod
    def _headers(right: dict[str, Any], other: dict[str, str]) -> bytes:
        message = Message()
        for name, value in {**right, **other}.items():
            for one in value if isinstance(value, list) else [value]:
                if one != "":
                    message[name] = one
        return message.as_bytes()

    def _metadata(self, said: dict[str, Any]) -> bytes:
        right = {"Metadata-Version": "2.1", "Name": said["project"], "Version": said["version"]}
        return self._headers({**right, "Requires-Dist": said["requires"]}, said["metadata"])

    def _wheel(self, said: dict[str, Any]) -> bytes:
        right = {"Wheel-Version": "1.0", "Generator": "tests", "Root-Is-Purelib": "false", "Tag": said["tag"]}
        return self._headers(right, said["wheel"])

    @staticmethod
    def _record(said: dict[str, Any], members: list[tuple[str, bytes]], own: str) -> bytes:
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        for name, data in members:
            if name not in said["unlisted"]:
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                rows.writerow([name, said["record"].get(name, f"sha256={digest}"), len(data)])
        rows.writerow([own, "", ""])
        return out.getvalue().encode()


def pack(path: Path, members: list[tuple[str, bytes]], *, twice: bool = False) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in [*members, *members[: 1 if twice else 0]]:
            archive.writestr(zipfile.ZipInfo(name), data)


def _aarch64(data: bytes) -> bytes:
    return data[:18] + struct.pack("<H", 183) + data[20:]


def _half_grafted(data: bytes) -> bytes:
    """DT_NEEDED of libcudart names another library; the version needs still name it."""
    image = ELFFile(io.BytesIO(data))
    (section,) = (one for one in image.iter_sections() if isinstance(one, DynamicSection))
    tags = {tag.needed: index for index, tag in enumerate(section.iter_tags()) if tag.entry.d_tag == "DT_NEEDED"}
    values = [tag.entry.d_val for tag in section.iter_tags()]
    at = section["sh_offset"] + 16 * next(index for name, index in tags.items() if "libcudart" in name)
    other = struct.pack("<QQ", 1, values[tags["libtorch_cpu.so"]])
    return data[:at] + other + data[at + 16 :]


def _cut_fatbin(data: bytes) -> bytes:
    at = data.index(struct.pack("<I", fatbin.MAGIC))
    return data[: at + 8] + struct.pack("<Q", 1 << 40) + data[at + 16 :]


LIBRARY_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "aarch64": _aarch64,
    "half-grafted": _half_grafted,
    "cut-fatbin": _cut_fatbin,
}
WHEEL_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "flipped": lambda data: data.replace(b"import ctypes", b"import ctypez", 1),
}
