"""Where an environment comes from: an interpreter that is asked, the text of collect_env, or flags over either."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version
from pydantic import ValidationError

from wheelmill import collect_env, hardware, proc, which_probe
from wheelmill.errors import InputError, MissingError
from wheelmill.which_env import Driver, Environment, Gpu, Libc, Python, Torch, cuda_of_local, origin_of
from wheelmill.which_fit import PLATFORM

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

IMPORT = 60.0
SPARE = 90.0
SIZE = 4 << 20
REMEDY = "name a Python of 3.8 or later with --python"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stated:
    """What flags state of an environment; None where they say nothing, and `none` where they say that there is none."""

    python: str | None = None
    abi: str | None = None
    implementation: str | None = None
    platform: str | None = None
    glibc: str | None = None
    torch: str | None = None
    cuda: str | None = None
    cxx11_abi: bool | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    gpus: tuple[str, ...] = ()


def interpreter(named: str | None) -> str:
    """The interpreter to ask: the named one, the active environment's, or the first on PATH."""
    if named is not None:
        path = shutil.which(named)
        if path is None and Path(named).is_dir():
            path = shutil.which(str(Path(named) / "bin" / "python"))
        if path is None:
            raise InputError(
                f"--python {named}: there is no such program", remedy="name an interpreter or its environment"
            )
        return str(Path(path).absolute())
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    own = shutil.which(str(Path(active) / "bin" / "python")) if active else None
    return own or shutil.which("python3") or shutil.which("python") or sys.executable


def ask(program: str, seconds: float = IMPORT) -> Environment:
    """The environment of an interpreter, in which torch's import may take that long; 0 has torch's files read.

    Raises MissingError when it does not answer.
    """
    told = tell(program, Path(which_probe.__file__), {"seconds": seconds}, seconds + SPARE)
    try:
        return _owned(Environment.model_validate(_told(told)))
    except ValidationError as error:
        raise MissingError(f"{program} did not say what it is: {error}", remedy=REMEDY) from error


def tell(program: str, script: Path, job: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """What a script that reads a JSON job writes when an interpreter runs it. Raises MissingError."""
    with tempfile.TemporaryDirectory(prefix="wheelmill-which-") as folder:
        asked, result = Path(folder) / "job.json", Path(folder) / "result.json"
        asked.write_text(json.dumps(job), encoding="utf-8")
        try:
            proc.run(
                [program, str(script), str(asked), str(result)],
                log=Path(folder) / "log",
                timeout=seconds,
                # A folder of that name where the user stands is no torch.
                cwd=Path(folder),
            )
            if not result.is_file():
                raise MissingError(f"{program} ran and said nothing: it is no Python, it seems", remedy=REMEDY)
            told: dict[str, Any] = json.loads(result.read_bytes())
        except (proc.ProcessError, OSError, ValueError) as error:
            raise MissingError(f"{program} did not say what it is: {error}", remedy=REMEDY) from error
        return told


def _told(result: dict[str, Any]) -> dict[str, Any]:
    """The result with a torch whose version nobody can read as unknown, which says so."""
    version = (result.get("torch") or {}).get("version")
    try:
        Version(version or "0")
    except InvalidVersion:
        note = f"torch's version {str(version)[:60]!r} is no version, so nothing is taken from it"
        return {**result, "torch": None, "notes": [*result["notes"], note]}
    return result


def _owned(env: Environment) -> Environment:
    """With who built its torch, where its version tells and nothing else did."""
    torch = env.torch
    if torch is None or torch.version is None or torch.origin is not None:
        return env
    return env.model_copy(update={"torch": torch.model_copy(update={"origin": origin_of(torch.version)})})


def text(path: str) -> Environment:
    """The environment of a file that holds collect_env's output; `-` reads standard input."""
    try:
        data = sys.stdin.buffer.read(SIZE) if path == "-" else _head(Path(path))
    except OSError as error:
        raise InputError(f"--collect-env {path}: {error.strerror}", remedy="name a file, or - for stdin") from error
    # PowerShell's > writes UTF-16.
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return collect_env.parse(data.decode(encoding, "replace"))


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(SIZE)


def override(env: Environment, stated: Stated) -> Environment:
    """The environment with what flags state in place of what was read. Raises InputError for what is no such fact."""
    changed: dict[str, Any] = {}
    for flags, change in FLAGS.items():
        try:
            changed |= change(env, stated)
        except ValidationError as error:
            given = str(error.errors()[0].get("input"))[:80]
            raise InputError(
                f"{flags}: {given!r} is not of its form", remedy="see `wheelmill which --help` for the forms"
            ) from error
    return env.model_copy(update=changed)


def _python(env: Environment, stated: Stated) -> dict[str, Any]:
    if stated.python is None and stated.abi is None and stated.implementation is None:
        return {}
    now = env.python
    version = (stated.python or (now.version if now else "")).rstrip("t")
    if not version:
        raise InputError("--abi needs --python-version", remedy="state both")
    if not re.match(r"\d+\.\d+", version):
        raise InputError(f"--python-version {version} is no version", remedy="write 3.12, 3.12.4 or 3.13t")
    threaded = (stated.python or "").endswith("t")
    minor = "".join(version.split(".")[:2])
    implementation = stated.implementation or (now.implementation if now else "cpython")
    own = f"cp{minor}{'t' if threaded else ''}" if implementation == "cpython" else None
    kept = now.abi if now and stated.python is None else None
    return {"python": Python(version=version, implementation=implementation, abi=stated.abi or kept or own)}


def _system(env: Environment, stated: Stated) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if stated.platform is not None:
        changed = _platform(stated.platform)
    if stated.glibc is not None:
        changed["libc"] = Libc(kind="glibc", version=stated.glibc)
        changed.setdefault("system", env.system or "linux")
    return changed


def _platform(tag: str) -> dict[str, Any]:
    """A platform tag as a system, a machine and its C library: manylinux_2_28_x86_64, linux_aarch64, win_amd64."""
    match = PLATFORM.fullmatch(tag)
    if match is None:
        raise InputError(
            f"--platform {tag} is no platform tag", remedy="write manylinux_2_28_x86_64, say, or win_amd64"
        )
    if match["win"]:
        machine = {"win32": "i686", "win_amd64": "x86_64", "win_arm64": "aarch64"}[match["win"]]
        return {"system": "windows", "machine": machine, "libc": None}
    if match["mac"]:
        version = match["macos"].replace("_", ".")
        return {"system": "macos", "machine": match["machine"], "system_version": version, "libc": None}
    changed: dict[str, Any] = {"system": "linux", "machine": match["machine"]}
    if match["musl"]:
        changed["libc"] = Libc(kind="musl", version=match["its"].replace("_", "."))
    elif match["glibc"]:
        changed["libc"] = Libc(kind="glibc", version=match["glibc"].replace("_", "."))
    return changed


def _torch(env: Environment, stated: Stated) -> dict[str, Any]:
    if stated.torch == "none":
        return {"torch": Torch(version=None)}
    now = env.torch if stated.torch is None else None
    version = stated.torch or (now.version if now else None)
    if version is None:
        if stated.cuda is None and stated.cxx11_abi is None:
            return {}
        raise InputError("--cuda and --cxx11-abi are of a torch, and none is known", remedy="state it with --torch")
    if not re.match(r"\d+\.\d+", version):
        raise InputError(f"--torch {version} is no version", remedy="write 2.11.0+cu130, or none")
    cuda = (
        _cuda(stated.cuda)
        if stated.cuda
        else (now.cuda if now else cuda_of_local(Torch(version=version).version or ""))
    )
    return {
        "torch": Torch(
            version=version,
            cuda=cuda,
            cxx11_abi=stated.cxx11_abi if stated.cxx11_abi is not None else (now.cxx11_abi if now else None),
            origin=now.origin if now else origin_of(version),
        )
    }


def _cuda(word: str) -> str:
    match = re.fullmatch(r"cu(\d+)(\d)", word)
    if match:
        return f"{match[1]}.{match[2]}"
    found = re.fullmatch(r"(\d+\.\d+)(\.\d+)*|(cpu|rocm|xpu)", word)
    if found is None:
        raise InputError(f"--cuda {word} is no CUDA", remedy="write 12.4, cu124, cpu or rocm")
    return found[1] or found[3]


def _gpu(env: Environment, stated: Stated) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if stated.driver == "none":
        changed["driver"] = Driver(version=None)
    elif stated.driver is not None or stated.driver_cuda is not None:
        version = stated.driver or (env.driver.version if env.driver else None)
        changed["driver"] = Driver(version=version, cuda=stated.driver_cuda)
    if stated.gpus:
        none = stated.gpus == ("none",)
        changed["gpus"] = () if none else tuple(_one(word) for word in stated.gpus)
    return changed


def _one(word: str) -> Gpu:
    """`9.0`, `sm_90`, or a card's name that the table knows."""
    match = re.fullmatch(r"(\d{1,2})\.(\d)|(?:sm_?)?(\d{1,2})(\d)", word, re.IGNORECASE)
    if match:
        return Gpu(capability=f"{match[1] or match[3]}.{match[2] or match[4]}")
    capability = hardware.capability(word)
    if capability is None:
        raise InputError(
            f"--gpu {word}: which compute capability it has is not known", remedy="write the capability, as 9.0"
        )
    return Gpu(name=word, capability=capability)


FLAGS: Mapping[str, Callable[[Environment, Stated], dict[str, Any]]] = {
    "--python-version, --implementation or --abi": _python,
    "--platform or --glibc": _system,
    "--torch or --cuda": _torch,
    "--driver, --driver-cuda or --gpu": _gpu,
}
