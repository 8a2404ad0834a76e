"""Tiny wheels for an index, each with what lies beside it, and the site as a mapping."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

from wheelmill.store import file_sha256

if TYPE_CHECKING:
    from pathlib import Path

EPOCH = (2026, 1, 2, 3, 4, 6)


def packed(members: dict[str, bytes]) -> bytes:
    """A zip of those members, the same bytes each time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content)
    return out.getvalue()


def members(project: str, version: str, requires: tuple[str, ...], tag: str) -> dict[str, bytes]:
    """What a wheel that installers accept holds: a module of its name that knows its version."""
    name = project.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {project}", f"Version: {version}", "Requires-Python: >=3.10"]
    lines += [f"Requires-Dist: {one}" for one in requires]
    wheel = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tag}\n"
    found = {
        f"{name}/__init__.py": f"version = {version!r}\n".encode(),
        f"{info}/METADATA": ("\n".join(lines) + "\n\nText").encode(),
        f"{info}/WHEEL": wheel.encode(),
    }
    rows = [f"{path},sha256={_hash(content)},{len(content)}" for path, content in found.items()]
    return {**found, f"{info}/RECORD": ("\n".join([*rows, f"{info}/RECORD,,"]) + "\n").encode()}


def _hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def add(
    dist: Path,
    version: str,
    environments: list[str],
    *,
    project: str = "demo",
    requires: tuple[str, ...] = (),
    proven: bool = True,
    tag: str = "py3-none-manylinux_2_28_x86_64",
    **manifest: object,
) -> Path:
    """A wheel with a manifest and an audit beside it."""
    dist.mkdir(parents=True, exist_ok=True)
    path = dist / f"{project.replace('-', '_')}-{version}-{tag}.whl"
    path.write_bytes(packed(members(project, version, requires, tag)))
    sha256 = file_sha256(path)
    cuda = environments[0].partition("-")[0]
    made = {
        "version": 1,
        "wheel": environments[0],
        "sha256": sha256,
        "environments": environments,
        "proof": {"sha256": sha256} if proven else None,
        "engine": "0.1.0",
        "executor": "local",
        "built": "2026-01-02T04:04:05+01:00",
        "cuda": cuda,
        "toolkit": None if cuda == "cpu" else {"version": f"{cuda[2:-1]}.{cuda[-1]}", "provider": "pypi"},
        "torch": "2.11.0",
        "sm": [] if cuda == "cpu" else ["8.0", "9.0+PTX"],
    }
    beside(path, ".manifest.json", {**made, **manifest})
    library = {"sass": ["80", "90a"], "ptx": ["90"], "torch_abi": "stable", "min_torch": "2.10"}
    libraries = {} if cuda == "cpu" else {f"{project}/lib.so": library}
    audit = {"version": 1, "file": path.name, "verdict": "pass", "libraries": libraries, "findings": []}
    beside(path, ".audit.json", {**audit, "sha256": sha256, "platform": {"claimed": tag.rpartition("-")[2]}})
    return path


def beside(wheel: Path, suffix: str, value: object) -> Path:
    path = wheel.with_name(wheel.name + suffix)
    path.write_text(json.dumps(value))
    return path


def change(wheel: Path, suffix: str = ".manifest.json", **fields: object) -> None:
    path = wheel.with_name(wheel.name + suffix)
    beside(wheel, suffix, {**json.loads(path.read_text()), **fields})


def tree(site: Path) -> dict[str, bytes]:
    """Every file of a site that is served."""
    found = (path for path in site.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in found}


def files(site: Path, page: str) -> list[dict[str, Any]]:
    """The files of a JSON page."""
    value: list[dict[str, Any]] = json.loads((site / page).read_text())["files"]
    return value
