"""Runs in the interpreter that `which` is asked about, and says what it is. Standard library alone; Python 3.8.

usage: python which_probe.py JOB.json RESULT.json

The job names how many seconds an import of torch may take; 0 has its files read instead. Whatever cannot be told is
null in the result, and why is among its notes. torch and the driver's library are loaded in processes of their own:
both may hang or crash.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import platform
import re
import signal
import struct
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

TORCH = """
import json, torch
print("RESULT" + json.dumps({
    "version": str(torch.__version__), "cuda": torch.version.cuda,
    "hip": getattr(torch.version, "hip", None) or getattr(torch.version, "rocm", None),
    "xpu": getattr(torch.version, "xpu", None), "cxx11_abi": torch.compiled_with_cxx11_abi(),
}))
"""
SECONDS = 20
NO_DEVICE = 100
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
LIBRARIES = ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "nvcuda.dll")
RUNNING: set[subprocess.Popen[bytes]] = set()
SMI = ("nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")


def python() -> dict[str, Any]:
    implementation = sys.implementation.name
    suffix = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    abi = f"cp{sys.version_info[0]}{sys.version_info[1]}{suffix}" if implementation == "cpython" else None
    return {"version": platform.python_version().rstrip("+"), "implementation": implementation, "abi": abi}


def libc() -> dict[str, Any] | None:
    if sys.platform != "linux":
        return None
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        name, version = "", ""
    if name == "glibc":
        return {"kind": "glibc", "version": ".".join(version.split(".")[:2])}
    for loader in Path("/lib").glob("ld-musl-*.so.1"):
        # The loader prints its version, and the usage, to standard error.
        said = output([str(loader)])[1]
        match = re.search(r"Version (\d+\.\d+)", said)
        return {"kind": "musl", "version": match.group(1) if match else None}
    return None


def run_apart(args: list[str], seconds: float) -> subprocess.CompletedProcess[bytes]:
    """Run a command for no longer than that, even where the kernel holds it, as a broken driver makes it do."""
    process = subprocess.Popen(  # noqa: S603
        args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    RUNNING.add(process)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        end(process)
        raise
    finally:
        RUNNING.discard(process)
    return subprocess.CompletedProcess(args, process.returncode, out, err)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it started; not waited for, for the kernel may hold it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, OSError):  # Windows has no groups
        process.kill()


def stop(*_: object) -> None:
    """End at once, with what runs: nobody waits for the result."""
    for process in tuple(RUNNING):
        end(process)
    os._exit(1)


def output(args: list[str], seconds: float = SECONDS) -> tuple[str, str]:
    """Standard output and error of a command, both empty where it does not run or end."""
    try:
        done = run_apart(args, seconds)
    except (OSError, subprocess.SubprocessError):
        return "", ""
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def torch(seconds: float, notes: list[str]) -> dict[str, Any] | None:
    """A torch by import; where that fails or takes too long, by what its files say."""
    if importlib.util.find_spec("torch") is None:
        return {"version": None}
    if not seconds:
        return installed()
    why = f"it took longer than {seconds:g} seconds"
    try:
        done = run_apart([sys.executable, "-c", TORCH], seconds)
    except (OSError, subprocess.SubprocessError):
        pass
    else:
        # Other packages print too when torch is imported; its own line is the last.
        found = result(done.stdout.decode(errors="replace").splitlines()[-1:])
        if found is not None:
            return {**told(found), "origin": origin()}
        why = (done.stderr.decode(errors="replace").strip().splitlines() or [ended(done.returncode)])[-1]
    notes.append(f"torch does not import ({why[:200]}): its files were read instead")
    return installed()


def result(lines: list[str]) -> dict[str, Any] | None:
    """What TORCH printed; None for anything else."""
    try:
        (line,) = lines
        found = json.loads(line[len("RESULT") :]) if line.startswith("RESULT") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("version"), str) else None


def ended(status: int) -> str:
    """How a process ended that said nothing."""
    return f"it ended with status {status}" if status >= 0 else f"it crashed with signal {-status}"


def told(found: dict[str, Any]) -> dict[str, Any]:
    kinds = (("rocm", found.get("hip") or found.get("rocm")), ("xpu", found.get("xpu")))
    other = next((kind for kind, value in kinds if value), "cpu")
    cuda = ".".join(found["cuda"].split(".")[:2]) if found.get("cuda") else other
    return {"version": found["version"], "cuda": cuda, "cxx11_abi": found.get("cxx11_abi")}


def installed() -> dict[str, Any] | None:
    """A torch by its version.py and its CMake file, or else by its distribution."""
    spec = importlib.util.find_spec("torch")
    root = Path(spec.origin).parent if spec is not None and spec.origin else None
    try:
        file = root / "version.py" if root else None
        # A pipe of that name would never end.
        text = file.read_text(encoding="utf-8", errors="replace") if file and file.is_file() else ""
    except OSError:
        text = ""
    values = dict(re.findall(r"^(__version__|cuda|hip|rocm|xpu)\b[^=\n]*=\s*'([^']*)'", text, re.MULTILINE))
    if "__version__" not in values:
        try:
            return {"version": metadata.version("torch"), "origin": origin()}
        except (metadata.PackageNotFoundError, UnicodeDecodeError):
            return None
    cmake = root / "share" / "cmake" / "Torch" / "TorchConfig.cmake" if root else None
    flag = (
        re.search(r"_GLIBCXX_USE_CXX11_ABI=([01])", cmake.read_text(errors="replace"))
        if cmake and cmake.is_file()
        else None
    )
    abi = flag.group(1) == "1" if flag else None
    return {**told({**values, "version": values["__version__"], "cxx11_abi": abi}), "origin": origin()}


def origin() -> str | None:
    """`conda` where conda installed it; else nothing is said."""
    try:
        by = (metadata.distribution("torch").read_text("INSTALLER") or "").strip()
    except (metadata.PackageNotFoundError, UnicodeDecodeError):
        by = ""
    records = [*Path(sys.prefix, "conda-meta").glob("pytorch-[0-9]*.json")]
    return "conda" if by == "conda" or (records and by != "pip") else None


def driver(notes: list[str]) -> tuple[dict[str, Any] | None, list[dict[str, Any]] | None]:
    """(the driver, the GPUs), each None where it is not known."""
    # Both hang where the driver does.
    with ThreadPoolExecutor(max_workers=1) as beside:
        asked = beside.submit(smi)
        said, _ = output([sys.executable, __file__, "--cuda"])
        rows = asked.result()
    cuda = json.loads(said) if said.startswith("{") else {"version": None, "gpus": None}
    version = next((row[2] for row in rows), None) or kernel()
    match = re.match(r"\d{1,4}(\.\d{1,4}){0,3}", version or "")
    version = match.group() if match else None
    if cuda["version"] is None and version is None:
        return {"version": None}, []
    fails = cuda.get("fails")
    if fails:
        notes.append(f"CUDA does not start here: the driver's library ends with {fails}")
    gpus = cuda["gpus"]
    if gpus is None and rows:
        gpus = [{"name": name, "capability": one if re.match(r"\d+\.\d+$", one) else None} for name, one, _ in rows]
    if gpus is None and not fails:
        notes.append("a driver is here, and its GPUs could not be asked for")
    known = version or cuda["version"]
    return {"version": version, "cuda": cuda["version"], "fails": fails} if known else None, gpus


def smi() -> list[list[str]]:
    for program in SMI:
        said, _ = output([program, "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"])
        rows = [[part.strip() for part in line.split(",")] for line in said.splitlines()]
        rows = [row for row in rows if len(row) == 3 and re.match(r"\d+\.[\d.]+$", row[2])]  # noqa: PLR2004
        if rows:
            return rows
    return []


def kernel() -> str | None:
    try:
        return Path("/sys/module/nvidia/version").read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def ask_cuda() -> dict[str, Any]:
    """What the driver's library says: the CUDA it serves, and the GPUs that this process may use."""
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        return {"version": None, "gpus": None}
    number = ctypes.c_int()
    wrong = library.cuDriverGetVersion(ctypes.byref(number))
    if wrong or number.value <= 0:
        return {"version": None, "gpus": None, "fails": failure(library, wrong) if wrong else None}
    version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    status = library.cuInit(0)
    if status == NO_DEVICE:
        return {"version": version, "gpus": []}
    if status:
        return {"version": version, "gpus": None, "fails": failure(library, status)}
    library.cuDeviceGetCount(ctypes.byref(number))
    return {"version": version, "gpus": [device(library, index) for index in range(number.value)]}


def failure(library: Any, status: int) -> str:
    word = ctypes.c_char_p()
    library.cuGetErrorName(status, ctypes.byref(word))
    return f"{(word.value or b'an error without a name').decode(errors='replace')} ({status})"


def device(library: Any, index: int) -> dict[str, Any]:
    handle, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(200)
    wrong = library.cuDeviceGet(ctypes.byref(handle), index)
    wrong = wrong or library.cuDeviceGetAttribute(ctypes.byref(major), CAPABILITY_MAJOR, handle)
    wrong = wrong or library.cuDeviceGetAttribute(ctypes.byref(minor), CAPABILITY_MINOR, handle)
    library.cuDeviceGetName(name, len(name), handle)
    return {
        "name": name.value.decode(errors="replace") or None,
        "capability": None if wrong else f"{major.value}.{minor.value}",
    }


def run(job: dict[str, Any]) -> dict[str, Any]:
    notes: list[str] = []
    system = {"linux": "linux", "darwin": "macos", "win32": "windows"}.get(sys.platform)
    bits = struct.calcsize("P") * 8
    # A 32-bit Python on a 64-bit system takes 32-bit wheels.
    machine = {"amd64": "x86_64", "arm64": "arm64" if system == "macos" else "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    found, gpus = driver(notes)
    mac = ".".join((platform.mac_ver()[0] or "0").split(".")[:2])
    return {
        "python": python(),
        "system": system,
        "system_version": (mac if "." in mac else mac + ".0") if system == "macos" else None,
        "machine": "i686" if machine == "x86_64" and bits == 32 else machine,  # noqa: PLR2004
        "libc": libc(),
        "torch": torch(job["seconds"], notes),
        "driver": found,
        "gpus": gpus,
        "wsl": "microsoft" in platform.release().lower(),
        "notes": notes,
    }


def main(argv: list[str]) -> None:
    if argv[1:] == ["--cuda"]:
        print(json.dumps(ask_cuda()))
        return
    signal.signal(signal.SIGTERM, stop)
    # This file's own folder holds modules that are none of that interpreter's.
    sys.path = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]
    Path(argv[2]).write_text(json.dumps(run(json.loads(Path(argv[1]).read_text(encoding="utf-8")))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv)
