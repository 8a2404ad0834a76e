"""The output of `python -m torch.utils.collect_env` as an environment. Of any release: a line that is not there, or
that says it could not be collected, leaves its fact unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from wheelmill import hardware
from wheelmill.errors import InputError
from wheelmill.which_env import Driver, Environment, Gpu, Libc, Python, Torch, cuda_of_local, origin_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LIMIT = 1 << 20
# More than any machine has.
GPUS = 256
# What follows is cut in code: an end of blanks that a pattern gives back one by one takes hours.
LINE = re.compile(r"^[ \t>]*([A-Z][\w '/]*?):(.*)$", re.MULTILINE)
GPU = re.compile(r"^[ \t>]*GPU ([0-9]{1,4}): (.+)$", re.MULTILINE)
PIP_TORCH = re.compile(r"^[ \t>]*\[pip3?\] torch==(\S+)", re.MULTILINE)
CONDA_TORCH = re.compile(r"^[ \t>]*\[conda\] (?:py|lib)?torch[ \t]+(\S+)[ \t]+(\S+)(?:[ \t]+(\S+))?", re.MULTILINE)
UNKNOWN = frozenset({"", "N/A", "Could not collect", "Unknown"})
MACHINES = {"amd64": "x86_64", "x64": "x86_64"}
TITLES = ("PyTorch version", "Python version", "OS")


def parse(text: str) -> Environment:
    """The environment that the text describes. Raises InputError for text that is none of collect_env's."""
    text = text[:LIMIT].replace("\r\n", "\n")
    lines: dict[str, str] = {}
    for match in LINE.finditer(text):
        lines.setdefault(match[1], match[2].strip())
    if not any(title in lines for title in TITLES):
        raise InputError(
            "this is no output of torch.utils.collect_env: it has no line `PyTorch version:` and none `OS:`",
            remedy="give what `python -m torch.utils.collect_env` prints, whole",
        )
    try:
        return _environment(lines, text)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise InputError(
            f"this output of collect_env states what cannot be: {str(wrong['input'])[:60]!r} as a {wrong['loc'][-1]}",
            remedy="remove that line, and state what is so with flags",
        ) from error


def _environment(lines: Mapping[str, str], text: str) -> Environment:
    system = _system(lines)
    platform_ = _known(lines, "Python platform") or ""
    return Environment(
        python=_python(_known(lines, "Python version") or ""),
        system=system,
        system_version=_macos(lines, platform_) if system == "macos" else None,
        machine=_machine(lines, platform_, system),
        libc=_libc(_known(lines, "Libc version") or "", platform_, lines.get("OS", "")),
        torch=_torch(lines, text),
        driver=_driver(lines),
        gpus=_gpus(lines, text),
        wsl="microsoft" in platform_.lower(),
        notes=tuple(_notes(lines, text)),
    )


def _known(lines: Mapping[str, str], title: str) -> str | None:
    value = lines.get(title)
    return None if value is None or value in UNKNOWN else value


def _system(lines: Mapping[str, str]) -> Literal["linux", "macos", "windows"] | None:
    words = f"{lines.get('OS', '')} {lines.get('Python platform', '')}".lower()
    if "microsoft windows" in words or "windows-" in words:
        return "windows"
    if "macos" in words or "mac osx" in words:
        return "macos"
    # collect_env names a Linux by its distribution.
    return "linux" if "linux" in words or _known(lines, "OS") else None


def _macos(lines: Mapping[str, str], platform_: str) -> str | None:
    match = re.search(r"macOS-(\d+\.\d+)", platform_) or re.search(r"(?:macOS|OSX) (\d+\.\d+)", lines.get("OS", ""))
    return match[1] if match else None


def _machine(lines: Mapping[str, str], platform_: str, system: str | None) -> str | None:
    for match in (
        re.search(r"-(x86_64|aarch64|arm64|ppc64le|s390x|i686|AMD64|ARM64)\b", platform_),
        re.search(r"\((x86_64|aarch64|arm64|ppc64le|s390x|i686|AMD64)\)", lines.get("OS", "")),
    ):
        if match:
            machine = MACHINES.get(match[1].lower(), match[1].lower())
            return "aarch64" if machine == "arm64" and system == "linux" else machine
    return "x86_64" if system == "windows" and "64-bit" in lines.get("OS", "") else None


def _libc(stated: str, platform_: str, os: str) -> Libc | None:
    """Its own line first: the platform's is the oldest glibc that the interpreter needs, and no more."""
    match = re.search(r"(glibc|musl)-?(\d+\.\d+)", stated)
    if match:
        return Libc(kind="musl" if match[1] == "musl" else "glibc", version=match[2])
    if "musl" in platform_ or "alpine" in os.lower():
        return Libc(kind="musl")
    return Libc(kind="glibc") if "with-glibc" in platform_ else None


def _python(stated: str) -> Python | None:
    match = re.match(r"(\d+\.\d+(?:\.\d+)?)", stated)
    if match is None:
        return None
    threaded = "free-threading" in stated.lower() or "free threading" in stated.lower()
    implementation = "pypy" if "pypy" in stated.lower() else "cpython"
    minor = "".join(match[1].split(".")[:2])
    # Of PyPy no ABI is known; a plain CPython says nothing, and a free-threaded one says so.
    abi = f"cp{minor}{'t' if threaded else ''}" if implementation == "cpython" else None
    return Python(version=match[1], implementation=implementation, abi=abi)


def _torch(lines: Mapping[str, str], text: str) -> Torch | None:
    version = _known(lines, "PyTorch version")
    listed, conda = PIP_TORCH.search(text), CONDA_TORCH.search(text)
    if version is None:
        version = listed[1] if listed else conda[1] if conda else None
        if version is None:
            # It printed N/A because it could not import one, and no package manager has one either.
            return Torch(version=None) if lines.get("PyTorch version") == "N/A" and "[pip" in text else None
    try:
        Version(version)
    except InvalidVersion:
        return None
    origin = origin_of(version)
    if conda and conda[3] != "pypi" and conda[2] != "pypi_0" and origin is None:
        return Torch(version=version, cuda=_cuda(lines, version), origin="conda")
    return Torch(version=version, cuda=_cuda(lines, version), origin=origin)


def _cuda(lines: Mapping[str, str], version: str) -> str | None:
    if _known(lines, "ROCM used to build PyTorch") not in {None, "None"}:
        return "rocm"
    built = lines.get("CUDA used to build PyTorch", "")
    match = re.match(r"(\d+\.\d+)", built)
    if match:
        return match[1]
    return cuda_of_local(version) or ("cpu" if built == "None" else None)


def _driver(lines: Mapping[str, str]) -> Driver | None:
    stated = lines.get("Nvidia driver version", "")
    match = re.match(r"\d{2,4}(\.\d{1,4}){0,3}$", stated)
    if match:
        return Driver(version=stated)
    return None


def _gpus(lines: Mapping[str, str], text: str) -> tuple[Gpu, ...] | None:
    """A build of torch without CUDA does not look for GPUs, so its `No CUDA` says nothing of them."""
    numbered = {int(match[1]): match[2].partition("(UUID")[0].strip() for match in GPU.finditer(text)}
    if numbered:
        return tuple(_gpu(numbered[number]) for number in sorted(numbered)[:GPUS])
    single = _known(lines, "GPU models and configuration")
    if single is None or single == "No CUDA" or single.startswith(("GPU ", "Device ")):
        return None
    return (_gpu(single),)


def _gpu(name: str) -> Gpu:
    # A MIG instance and a name with more behind it keep the card's own.
    return Gpu(name=name[:200], capability=hardware.capability(name))


def _notes(lines: Mapping[str, str], text: str) -> Iterator[str]:
    version, listed = _known(lines, "PyTorch version"), PIP_TORCH.search(text)
    if version is None and listed:
        yield f"torch {listed[1][:60]} is installed there, and collect_env could not import it"
    elif version and listed and listed[1].split("+")[0] != version.split("+")[0]:
        yield f"two torches are there: {version} is imported, and pip lists {listed[1][:60]}"
