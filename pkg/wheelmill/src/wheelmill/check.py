"""Static checks of a labelled wheel against the plan: facts of each library → findings. No import, fails closed."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version
from wheel.wheelfile import WheelError, WheelFile

from wheelmill import elf
from wheelmill.errors import GateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.elf import Library
    from wheelmill.model import Wheel

Severity = Literal["error", "warning", "info"]
# The C shims of torch's stable ABI, under their two prefixes.
SHIM = re.compile(r"(aoti_torch_|torch_)\w+")
CPYTHON = re.compile(r"_?Py[A-Z_]\w*")
GRAFTED = re.compile(r"lib(torch(_cpu|_cuda|_python)?|c10(_cuda)?|cudart|cuda)([-.].*)?\.so.*")
# Libraries whose symbols the stable ABI's library may use beside torch's shims.
SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libcudart|ld-linux-x86-64)\.so.*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One observation. `message` says what will happen to whom, `remedy` what to do."""

    rule: str
    severity: Severity
    library: str | None
    message: str
    remedy: str


def libraries(path: Path, work: Path) -> tuple[Library, ...]:
    """The facts of every shared library in a wheel. Raises GateError when the archive or a library is unsound."""
    try:
        with WheelFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            for name in names:  # reading a member through WheelFile checks it against RECORD
                with archive.open(name) as member:
                    while member.read(1 << 20):
                        pass
            shared = [name for name in names if re.search(r"\.so(\.[\d.]+)?$", name)]
            return tuple(elf.read(Path(archive.extract(name, work)), name) for name in shared)
    except (WheelError, zipfile.BadZipFile, KeyError) as error:
        raise GateError(
            f"{path.name} is not a sound wheel: {error}", remedy="build it again; the file was damaged or edited"
        ) from error


def _names(path: Path, wheel: Wheel) -> Iterator[Finding]:
    name, version, _, _ = parse_wheel_filename(path.name)
    with zipfile.ZipFile(path) as archive:
        (info,) = {n.split("/")[0] for n in archive.namelist() if n.split("/")[0].endswith(".dist-info")}
        metadata = BytesParser().parsebytes(archive.read(f"{info}/METADATA"))
    stated = Version(metadata["Version"])
    if stated != version:
        yield Finding(
            rule="version-mismatch",
            severity="error",
            library=None,
            message=f"the filename says {version} and METADATA {stated}: uv refuses or reinstalls such a wheel",
            remedy="label the wheel again with wheelmill build",
        )
    local = stated.local or ""
    if local != wheel.local and not local.endswith(f".{wheel.local}"):
        yield Finding(
            rule="local-version",
            severity="error",
            library=None,
            message=f"{name} {stated} carries no +{wheel.local}: users cannot tell it from another CUDA's wheel",
            remedy="label the wheel again with wheelmill build",
        )
    torch = [r for r in map(Requirement, metadata.get_all("Requires-Dist", [])) if r.name.lower() == "torch"]
    unconditional = [r for r in torch if r.marker is None]
    needed = set(Requirement(wheel.requires).specifier)
    if len(unconditional) != 1 or not needed <= set(unconditional[0].specifier):
        yield Finding(
            rule="torch-requirement",
            severity="error",
            library=None,
            message=f"METADATA does not require {wheel.requires}: pip would install it beside a torch it breaks on",
            remedy="label the wheel again with wheelmill build",
        )


def _targets(library: Library, wheel: Wheel) -> Iterator[Finding]:
    asked = {sm.removesuffix("+PTX").replace(".", "") for sm in wheel.sm}
    asked_ptx = {sm.removesuffix("+PTX").replace(".", "") for sm in wheel.sm if sm.endswith("+PTX")}
    for kind, want, have in (("sass", asked, set(library.sass)), ("ptx", asked_ptx, set(library.ptx))):
        for target in sorted(want - have, key=elf.sm_order):
            yield Finding(
                rule=f"{kind}-missing",
                severity="error",
                library=library.path,
                message=f"no {kind.upper()} for SM {target}, which the matrix asks for; it holds "
                f"{', '.join(sorted(have, key=elf.sm_order)) or 'none'}: users of that GPU get "
                "'no kernel image is available'",
                remedy="let the project's build read TORCH_CUDA_ARCH_LIST or CMAKE_CUDA_ARCHITECTURES",
            )
        for target in sorted(have - want, key=elf.sm_order):
            yield Finding(
                rule=f"{kind}-unasked",
                severity="warning",
                library=library.path,
                message=f"{kind.upper()} for SM {target}, which the matrix does not ask for: a larger file",
                remedy="remove the hard-coded architecture from the project's build, or add it to `sm`",
            )


def _runtimes(library: Library, wheel: Wheel) -> Iterator[Finding]:
    for needed in library.needed:
        major = re.fullmatch(r"libcudart\.so\.(\d+)(\.\d+)?", needed)
        if major and (wheel.cuda == "cpu" or major.group(1) != wheel.cuda.removeprefix("cu")[:2]):
            yield Finding(
                rule="cuda-major",
                severity="error",
                library=library.path,
                message=f"it needs {needed}, and the label says {wheel.cuda}: the import fails beside that torch",
                remedy="build with the toolkit of the cell (CUDA_HOME), or without CUDA for cpu",
            )
    if GRAFTED.fullmatch(Path(library.path).name):
        yield Finding(
            rule="grafted-runtime",
            severity="error",
            library=library.path,
            message="a copy of torch's or CUDA's own library lies in the wheel: two of them in one process crash",
            remedy="link against it dynamically, and leave it out of the wheel",
        )


def _symbols(library: Library, wheel: Wheel) -> Iterator[Finding]:
    cpython = sorted(symbol for symbol in library.undefined if CPYTHON.fullmatch(symbol))
    cpython += [name for name in library.needed if name.startswith(("libpython", "libtorch_python"))]
    if wheel.python_abi == "none" and cpython:
        yield Finding(
            rule="cpython-symbol",
            severity="error",
            library=library.path,
            message=f"it uses CPython's {', '.join(cpython[:3])} ({len(cpython)} in all), and a py3-none wheel "
            "promises every Python",
            remedy="set abi.python to per-version in matrix.yaml, or register the operators without pybind11",
        )
    if wheel.torch_abi == "stable":
        foreign = sorted(
            symbol for symbol, version in library.undefined.items() if version is None and not SHIM.fullmatch(symbol)
        )
        needed = [name for name in library.versions if not SYSTEM.fullmatch(name)]
        if foreign or needed:
            yield Finding(
                rule="unstable-torch-abi",
                severity="error",
                library=library.path,
                message=f"labelled as torch's stable ABI, and it needs {', '.join((foreign + needed)[:3])} "
                f"({len(foreign + needed)} in all): it may not load on another torch release",
                remedy="use torch/csrc/stable and torch/headeronly alone, or set abi.torch to per-release",
            )


def _policy(path: Path, platforms: tuple[str, ...], glibc: str | None, size: int | None) -> Iterator[Finding]:
    floors = [tuple(map(int, found)) for p in platforms for found in re.findall(r"manylinux_(\d+)_(\d+)_", p)]
    if glibc is not None and (not floors or min(floors) > tuple(map(int, glibc.split(".")))):
        yield Finding(
            rule="glibc-policy",
            severity="warning",
            library=None,
            message=f"the wheel needs {' or '.join(platforms)}, and policy.glibc asks for {glibc}: pip passes over it "
            "on older systems",
            remedy="build it in a manylinux image (the docker executor), or raise policy.glibc",
        )
    if size is not None and path.stat().st_size > size:
        yield Finding(
            rule="size-policy",
            severity="error",
            library=None,
            message=f"the wheel has {path.stat().st_size:,} bytes, and policy.size allows {size:,}",
            remedy="build for fewer SM targets, or raise policy.size",
        )


def check(
    path: Path, wheel: Wheel, platforms: tuple[str, ...], work: Path, *, glibc: str | None, size: int | None
) -> tuple[tuple[Library, ...], tuple[Finding, ...]]:
    """Every library's facts and every finding, the worst of which is the verdict."""
    found = libraries(path, work)
    findings = [*_names(path, wheel), *_policy(path, platforms, glibc, size)]
    device = [library for library in found if library.sass or library.ptx]
    if wheel.cuda != "cpu" and not device:
        findings.append(
            Finding(
                rule="no-device-code",
                severity="error",
                library=None,
                message=f"the wheel claims {wheel.cuda} and holds no device code: it runs on no GPU",
                remedy="see that the project builds its CUDA sources when FORCE_CUDA=1",
            )
        )
    for library in found:
        findings += [*_runtimes(library, wheel), *_symbols(library, wheel)]
    for library in device:
        findings += _targets(library, wheel)
    return found, tuple(findings)
