"""Checks of Python, torch, build tools, the system and its container engine. Facts → findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from wheelmill import hardware
from wheelmill.backend import BYTES_A_JOB
from wheelmill.doctor_case import gigabytes, older
from wheelmill.doctor_findings import Finding, found
from wheelmill.names import listing, version_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.doctor_case import Case

# setuptools 70 took `packaging` out of pkg_resources.
PACKAGING_GONE = "70"
MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)|manylinux(1|2010|2014)")
LEGACY = {"1": "2.5", "2010": "2.12", "2014": "2.17"}
# Requirements that other checks tell of, by what they bring; and the one without which `import torch` stops.
BROUGHT = ("nvidia-", "cuda-", "setuptools")
IMPORTED = "typing-extensions"
DISK = 2 << 30


def python(case: Case) -> Iterator[Finding]:
    env, mine = case.machine.env, case.machine.python
    if env.python is None:
        return
    if not mine.headers:
        words = {"version": env.python.version, "folder": mine.include, "minor": env.python.minor}
        yield found("python-headers", **words, install=case.install("headers"))
    known = case.known.pythons
    minor = env.python.minor + ("t" if env.python.threaded else "")
    if case.torch is None and env.tabled and minor not in known:
        plain = [one for one in known if not one.endswith("t")]
        newest = case.known.torch[list(case.known.torch)[-1]].python
        best = max((one for one in plain if one in newest), key=version_key, default=plain[-1])
        yield found("python-no-torch", minor=minor, known=listing(known), best=best)


def torch(case: Case) -> Iterator[Finding]:
    env, files = case.machine.env, case.machine.torch
    words = case.words
    if env.torch is None:
        yield found("torch-unknown", **words, why="; ".join(env.notes) or "its version.py is missing or odd")
        return
    if case.torch is None:
        newest, serves = list(case.known.torch.values())[-1], env.driver.serves if env.driver else None
        late = not _served(newest.pypi or newest.cuda[-1], serves)
        where = f" --index-url {_index(case)}" if late else ""
        yield found("torch-absent", **words, command=f"{case.pip} torch{where}")
        return
    version = case.torch.version
    if files is not None and files.damaged is not None:
        file, why = files.damaged
        command = case.this_torch("--force-reinstall --no-deps ")
        yield found("torch-files", **words, file=file, why=why, version=version, command=command)
    if files is not None and files.lacking:
        yield _libraries(case)
    others = [name for name in files.absent if not name.startswith(BROUGHT)] if files is not None else []
    if others:
        count = "is not" if len(others) == 1 else "are not"
        # The same torch once more brings those that it was released with.
        command = f"{case.pip} {' '.join(others)}" if case.torch.origin == "other" else case.this_torch()
        names = {"names": listing(others), "count": count, "command": command}
        yield found("torch-requirements", "error" if IMPORTED in others else None, **words, **names, version=version)
    if case.torch.cuda in ("cpu", "xpu") and ((case.project and case.project.cuda) or env.gpus):
        what = "the project compiles CUDA code" if case.project and case.project.cuda else "a GPU is here"
        yield found(
            "torch-cpu",
            None if case.project and case.project.cuda else "warning",
            **words,
            version=version,
            what=what,
            index=_index(case),
        )
    if case.torch.origin in ("conda", "other"):
        yield found("torch-origin", **words, version=version, origin=files.source if files else case.torch.origin)


def _libraries(case: Case) -> Finding:
    files, own = case.machine.torch, case.torch
    lacking = files.lacking if files else {}
    names = list(lacking)
    return found(
        "torch-libraries",
        version=own.version if own else "",
        libraries=listing(names, limit=6),
        count="is not" if len(names) == 1 else "are not",
        by=listing(dict.fromkeys(lacking.values()), limit=3),
        first=names[0],
        # The requirements of the wheel bring its libraries.
        command=case.this_torch("--force-reinstall "),
    )


def _index(case: Case) -> str:
    """The index of torch for the newest CUDA that the driver serves, of this torch's, else of the newest torch's."""
    rows = [row for minor, row in case.known.torch.items() if case.torch and minor == case.torch.minor]
    rows += reversed([*case.known.torch.values()])
    serves = case.machine.env.driver.serves if case.machine.env.driver else None
    fitting = [tag for row in rows for tag in reversed(row.cuda) if tag != "cpu" and _served(tag, serves)]
    return case.index(fitting[0] if fitting else rows[0].cuda[-1])


def _served(tag: str, serves: str | None) -> bool:
    return serves is None or not older(serves, tag[2:-1])


def tools(case: Case) -> Iterator[Finding]:
    files, torch_ = case.machine.torch, case.torch
    have = case.machine.python.tools.get("setuptools")
    words, project = case.words, case.project
    wanted = files.setuptools if files else None
    if torch_ is not None and have is None:
        # A build that names torch and setuptools has its own, and so has one without a setup.py.
        own = project is not None and (
            not project.setup or any(one.startswith("torch") for one in project.requires or ())
        )
        yield found("setuptools-absent", "warning" if own else None, **words, wanted=wanted or "setuptools")
    elif torch_ is not None and have is not None:
        version = torch_.version
        if wanted and not Requirement(wanted).specifier.contains(have, prereleases=True):
            yield found("setuptools-refused", **words, have=have, version=version, wanted=wanted)
        if files is not None and files.pkg_resources and not older(have, PACKAGING_GONE):
            yield found("setuptools-pkg-resources", **words, have=have, version=version)
    if not case.ninja:
        yield found("ninja-absent", **words)


def system(case: Case) -> Iterator[Finding]:
    env, mine = case.machine.env, case.machine.system
    if env.libc is not None and env.libc.kind == "musl":
        yield found("libc-musl")
    elif env.libc is not None and env.libc.version and case.torch is None:
        yield from _glibc(case, env.libc.version)
    conda, own = mine.conda_glibcxx, mine.glibcxx
    if conda and own and older(conda, own):
        yield found("libstdcxx-conda", conda=mine.conda_libstdcxx, have=conda, system=own)
    yield from _memory(case)
    for disk in mine.disks:
        if disk.free < DISK:
            command = f"df -h {disk.folder}; uv cache prune; pip cache purge"
            if "temporary" in disk.what:
                command += "; or export TMPDIR=FOLDER on a larger disk"
            words = {"free": gigabytes(disk.free), "what": disk.what, "folder": disk.folder}
            yield found("disk-full", **words, command=command)
    if env.wsl:
        yield from _wsl(case)


def _glibc(case: Case, have: str) -> Iterator[Finding]:
    for minor, row in case.known.torch.items():
        match = MANYLINUX.search(row.manylinux or "")
        if match is None:
            continue
        needs = LEGACY[match[3]] if match[3] else f"{match[1]}.{match[2]}"
        if older(have, needs):
            yield found("glibc-old", have=have, minor=minor, tag=row.manylinux)
            return


def _memory(case: Case) -> Iterator[Finding]:
    mine = case.machine.system
    if mine.jobs is None or mine.memory is None:
        return
    if mine.stated_jobs == 0:
        what = "MAX_JOBS is 0, which ninja takes for no limit"
    elif mine.stated_jobs is not None and mine.stated_jobs > max(1, mine.memory // BYTES_A_JOB):
        what = f"MAX_JOBS is {mine.stated_jobs}"
    elif mine.stated_jobs is None and mine.jobs < mine.cores:
        what = f"ninja starts {mine.cores + 2} compilers on {mine.cores} cores"
    else:
        return
    yield found("memory-jobs", free=gigabytes(mine.memory), what=what, jobs=mine.jobs)


def _wsl(case: Case) -> Iterator[Finding]:
    mine, kits = case.machine.system, case.machine.toolkits
    if not mine.wsl_driver:
        command = "wsl --update (in Windows), and install NVIDIA's driver in Windows, none in Linux"
        yield found("wsl-driver", what="/usr/lib/wsl/lib has no libcuda.so.1", command=command)
    elif mine.linux_driver is not None:
        command = "apt-get purge 'libnvidia-compute-*' 'nvidia-driver-*', and put /usr/lib/wsl/lib first: sudo ldconfig"
        what = f"{mine.linux_driver}, a Linux driver's library, lies beside /usr/lib/wsl/lib"
        yield found("wsl-driver", what=what, command=command)
    if kits.home is not None and kits.origin in ("CUDA_HOME", "CUDA_PATH") and _of_windows(kits.home):
        yield found("wsl-toolkit", variable=kits.origin, home=kits.home)


def _of_windows(path: str) -> bool:
    return bool(re.match(r"/mnt/[a-z]/|[A-Za-z]:", path))


def containers(case: Case) -> Iterator[Finding]:
    engine = case.machine.engine
    if engine.state != "answers":
        check = "engine-absent" if engine.state == "absent" else "engine-refused"
        yield found(check, said=engine.said, command=engine.remedy)
    elif engine.gpu is not None:
        said, remedy = engine.gpu
        yield found("engine-gpu", None if case.machine.env.gpus else "info", said=said, command=remedy)


def branch(cuda: str) -> str:
    """The driver branch that serves a CUDA, in words."""
    return f"{hardware.branch_for(cuda) or 'a newer one'}"
