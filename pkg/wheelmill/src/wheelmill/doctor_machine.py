"""The facts of this machine, and of an interpreter's torch on it. Every program that is asked has a time limit."""

from __future__ import annotations

import contextlib
import grp
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelmill import (
    backend,
    doctor_compilers,
    doctor_probe,
    doctor_toolkits,
    doctor_torch,
    engine,
    gates_box,
    which_read,
)
from wheelmill.doctor_facts import Disk, Engine, Interpreter, Machine, Program, System
from wheelmill.doctor_findings import installers
from wheelmill.errors import MissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from wheelmill.facts import Facts
    from wheelmill.which_env import Environment

PROBE = 60.0
# As long as `which_probe` waits for it: the two are asked at once.
SMI = 20.0
ENGINE = 10
WSL = "/usr/lib/wsl/lib"
NVIDIA, DISPLAY = "0x10de", "0x03"
# Python refuses to read a number of thousands.
DIGITS = 1000
GLIBCXX = re.compile(rb"GLIBCXX_(3\.4\.\d{1,3})\0")
# What Docker, Podman, Apptainer, LXC and systemd put into a container; and what they and Kubernetes set.
APPTAINER = "/.singularity.d"
IN_CONTAINER = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container", APPTAINER)
BY_VARIABLE = ("container", "KUBERNETES_SERVICE_HOST")
ANYBODY = stat.S_IROTH | stat.S_IWOTH
LDCONFIG = ("ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig")


def read(program: str, known: Facts, *, folder: Path, package: str | None = None) -> tuple[Machine, dict[str, Any]]:
    """(the machine as `program`'s Python sees it, what `doctor_probe` told). `folder` is where a build would work.

    Raises MissingError where the interpreter does not answer.
    """
    env = dict(os.environ)
    # nvidia-smi hangs where the driver does, and so does what `ask` does: they wait at once, and so do the tools.
    with (
        smi(env) as asked,
        doctor_compilers.compiler(env) as compiler,
        doctor_toolkits.ninja(env, program) as ninja,
    ):
        told = which_read.tell(program, Path(doctor_probe.__file__), {"package": package}, PROBE)
        environment = _with_abi(which_read.ask(program, 0), known)
        told["folders"] = doctor_torch.folders(ldconfig(), env, told["site"], told["conda"])
        torch = doctor_torch.read(told["torch"], environment, known, told["folders"]) if told["torch"] else None
        machine = Machine(
            env=environment,
            python=_interpreter(told),
            torch=torch,
            toolkits=doctor_toolkits.toolkits(env, told["site"], (told["conda"], env.get("CONDA_PREFIX"))),
            compiler=compiler(),
            ninja=ninja(),
            system=system(env, told["conda"], told["folders"], folder),
            engine=container(),
            smi=asked(),
        )
    return machine, told


def _with_abi(env: Environment, known: Facts) -> Environment:
    """With the C++ ABI that the table of releases states, where torch's files state none."""
    torch = env.torch
    row = known.torch.get(torch.minor) if torch is not None and torch.version is not None else None
    if torch is None or row is None or torch.cxx11_abi is not None or torch.origin not in ("pytorch", None):
        return env
    return env.model_copy(update={"torch": torch.model_copy(update={"cxx11_abi": row.cxx11(torch.tag or "")})})


def _interpreter(told: Mapping[str, Any]) -> Interpreter:
    return Interpreter(
        **{name: told[name] for name in ("executable", "include", "headers", "conda", "managed", "tools")}
    )


@contextlib.contextmanager
def smi(env: Mapping[str, str]) -> Iterator[Callable[[], Program | None]]:
    """What gives the answer of an `nvidia-smi` that runs beside the block; None where there is none."""
    path = shutil.which("nvidia-smi", path=env.get("PATH", "")) or shutil.which(f"{WSL}/nvidia-smi")
    if path is None:
        yield lambda: None
        return
    with doctor_toolkits.asking([path, "-L"], seconds=SMI) as answer:
        yield answer


def ldconfig() -> str:
    """What `ldconfig -p` says; nothing where there is none."""
    path = next(filter(None, map(shutil.which, LDCONFIG)), None)
    return doctor_toolkits.ask([path, "-p"]).said if path else ""


def container() -> Engine:
    """Whether a container engine answers, and can give a container the GPU."""
    from docker.errors import DockerException
    from requests import RequestException

    try:
        client = engine.connect(seconds=ENGINE)
        try:
            _, refused = gates_box.gpu_request(client.info())
        finally:
            client.close()
    except MissingError as error:
        absent = isinstance(error, engine.NoEngineError)
        return Engine(state="absent" if absent else "refuses", said=str(error), remedy=error.remedy)
    except (DockerException, RequestException, OSError, ValueError) as error:
        why = engine.explain(error)
        return Engine(state="refuses", said=str(why), remedy=why.remedy)
    return Engine(state="answers", gpu=(refused["reason"], refused["remedy"]) if refused else None)


def system(env: Mapping[str, str], conda: str | None, folders: tuple[Path, ...], folder: Path) -> System:
    """The machine's own facts; what cannot be read is None."""
    prefixes = [one for one in (conda, env.get("CONDA_PREFIX")) if one]
    apart = [one for one in folders if not any(one.is_relative_to(prefix) for prefix in prefixes)]
    # conda's Python loads conda's; any other does where LD_LIBRARY_PATH leads there.
    first = [Path(conda, "lib")] if conda else [one for one in folders if one not in apart]
    theirs = next((one / "libstdc++.so.6" for one in first if (one / "libstdc++.so.6").is_file()), None)
    linux = [one / "libcuda.so.1" for one in apart if str(one) != WSL]
    stated = env.get("MAX_JOBS", "")
    return System(
        installer=next((name for name in installers() if shutil.which(name)), None),
        cores=len(os.sched_getaffinity(0)),
        memory=_memory(),
        jobs=_jobs(),
        stated_jobs=int(stated) if stated.isdecimal() and len(stated) < DIGITS else None,
        disks=tuple(_disks(folder)),
        pci=_pci(),
        nodes=_nodes(),
        capabilities=env.get("NVIDIA_DRIVER_CAPABILITIES"),
        glibcxx=next((one for place in apart if (one := _glibcxx(place / "libstdc++.so.6"))), None),
        conda_glibcxx=_glibcxx(theirs) if theirs else None,
        conda_libstdcxx=str(theirs) if theirs else None,
        wsl_driver=Path(WSL, "libcuda.so.1").exists(),
        linux_driver=next((str(one) for one in linux if _exists(one)), None),
        forced=env.get("FORCE_CUDA") == "1",
        visible=env.get("CUDA_VISIBLE_DEVICES"),
        container=any(map(os.path.exists, IN_CONTAINER)) or any(map(env.get, BY_VARIABLE)),
        apptainer=Path(APPTAINER).exists(),
    )


def _memory() -> int | None:
    with contextlib.suppress(OSError, KeyError, ValueError):
        return backend.free_memory()
    return None


def _jobs() -> int | None:
    """How many compilers of torch's headers fit the memory that is free, whatever MAX_JOBS says."""
    with contextlib.suppress(OSError, KeyError, ValueError):
        return backend.fitting()
    return None


def _exists(path: Path) -> bool:
    try:
        return path.is_file() and not path.resolve().is_relative_to(WSL)
    except (OSError, RuntimeError):
        return False


def _disks(folder: Path) -> list[Disk]:
    try:
        temporary = tempfile.gettempdir()
    except OSError:
        temporary = "/tmp"  # noqa: S108
    found = []
    for what, place in (("the build", str(folder)), ("the folder for temporary files", temporary)):
        with contextlib.suppress(OSError, ValueError):
            found.append(Disk(what=what, folder=place, free=shutil.disk_usage(place).free))
    return found


def _pci() -> tuple[str, ...]:
    """The PCI slots of NVIDIA's GPUs, by the kernel's list."""
    slots = []
    for device in sorted(Path("/sys/bus/pci/devices").glob("*")):
        with contextlib.suppress(OSError):
            vendor, kind = ((device / name).read_text(encoding="ascii").strip() for name in ("vendor", "class"))
            if vendor == NVIDIA and kind.startswith(DISPLAY):
                slots.append(device.name)
    return tuple(slots)


def _nodes() -> dict[str, str | None]:
    """The driver's device files; a container's group of devices counts, and nothing is opened."""
    found: dict[str, str | None] = {}
    for path in sorted([*Path("/dev").glob("nvidia*"), Path("/dev/nvmap")]):
        with contextlib.suppress(OSError):
            about = path.stat()
            if stat.S_ISCHR(about.st_mode):
                found[str(path)] = None if os.access(path, os.R_OK | os.W_OK) else _keeper(about)
    return found


def _keeper(about: os.stat_result) -> str:
    """The group that may open a file where this process may not by the file's mode; else nothing."""
    mine = os.geteuid() in (0, about.st_uid) or about.st_gid in (os.getegid(), *os.getgroups())
    if mine or about.st_mode & ANYBODY == ANYBODY:
        return ""
    try:
        return grp.getgrgid(about.st_gid).gr_name
    except KeyError:
        return str(about.st_gid)


def _glibcxx(path: Path) -> str | None:
    """The newest GLIBCXX that a libstdc++ offers."""
    try:
        found = GLIBCXX.findall(path.read_bytes())
    except OSError:
        return None
    return max((one.decode() for one in found), key=lambda one: int(one.rpartition(".")[2]), default=None)
