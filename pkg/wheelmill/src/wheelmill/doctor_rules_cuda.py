"""Checks of the driver, the GPUs and the CUDA toolkit. Facts → findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill import arch, hardware
from wheelmill.doctor_case import exported, older, oldest_and_newest, runs
from wheelmill.doctor_findings import Finding, found
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.doctor_case import Case
    from wheelmill.doctor_facts import Nvcc, Program, Project, Toolkits
    from wheelmill.which_env import Torch

SMI_SECONDS = 20.0
SAID = 300
# What nvidia-smi says, and what mends it.
SMI_MENDS = {
    "version mismatch": "restart the machine: its kernel runs another driver version than is installed",
    "unknown error": "restart the container, whose device group was reset; give it GPUs by CDI: docker run --device "
    "nvidia.com/gpu=all",
}
SMI_MEND = "modprobe nvidia; nvidia-smi; dmesg | grep -i -e xid -e nvrm"


def driver(case: Case) -> Iterator[Finding]:
    env, smi = case.machine.env, case.machine.smi
    if smi is not None and smi.answer != "works":
        yield from _smi(smi)
        if smi.answer == "hangs":
            return
    if env.driver is None or (env.driver.version is None and env.driver.cuda is None):
        if smi is None or smi.answer == "works":
            pci = case.machine.system.pci
            yield found("driver-unloaded", slots=listing(pci, limit=8)) if pci else found("driver-absent")
        return
    torch = case.torch
    serves = env.driver.serves
    if torch is not None and torch.major is not None and serves and int(serves.partition(".")[0]) < torch.major:
        yield _old(case, torch, serves)
    yield from _gpus(case)


def _smi(smi: Program) -> Iterator[Finding]:
    if smi.answer == "hangs":
        yield found("driver-hangs", program=smi.path, seconds=SMI_SECONDS)
        return
    low = smi.said.lower()
    command = next((mend for words, mend in SMI_MENDS.items() if words in low), SMI_MEND)
    said = " ".join(smi.said[:SAID].split()) or "nothing is said"
    yield found("driver-fails", program=smi.path, status=smi.status, said=said, command=command)


def _old(case: Case, torch: Torch, serves: str) -> Finding:
    env = case.machine.env
    row = case.known.torch.get(torch.minor)
    branch = hardware.branch_for(f"{torch.major}.0")
    major = int(serves.partition(".")[0])
    fitting = [tag for tag in (row.cuda if row else ()) if tag != "cpu" and int(tag[2:-1]) <= major]
    other = f"; or a torch for this driver: {case.torch_for(fitting[-1])}" if fitting else ""
    return found(
        "driver-old",
        version=env.driver.version if env.driver else "",
        serves=serves,
        torch=torch.version,
        cuda=torch.cuda,
        command=f"install NVIDIA's driver {branch or 'of that CUDA'} or later{other}",
    )


def _gpus(case: Case) -> Iterator[Finding]:
    env, system = case.machine.env, case.machine.system
    if env.gpus is None:
        version = env.driver.version if env.driver else None
        yield found("driver-mute", version=version or "of unknown version")
        return
    if not env.gpus:
        hidden = system.visible is not None
        why = f": CUDA_VISIBLE_DEVICES is {system.visible!r}" if hidden else ""
        command = "unset CUDA_VISIBLE_DEVICES" if hidden else "nvidia-smi -L; in a container: docker run --gpus all"
        yield found("gpu-none", why=why, command=command)
    for gpu in dict.fromkeys(env.gpus):
        if gpu.capability is None:
            yield found("gpu-unknown", gpu=gpu)
    yield from _torch_code(case)


def _torch_code(case: Case) -> Iterator[Finding]:
    """The code of torch itself against the GPUs, as its library holds it, else as the table of releases says."""
    torch, files = case.torch, case.machine.torch
    if torch is None or torch.major is None:
        return
    sass, ptx = (files.sass, files.ptx) if files is not None else (None, ())
    row = case.known.torch.get(torch.minor)
    if sass is None and row is not None and torch.tag in row.sm:
        targets = row.sm[torch.tag or ""]
        sass = tuple(one.name.replace(".", "") for one in targets)
        ptx = tuple(one.name.replace(".", "") for one in targets if one.ptx)
    if sass is None:
        return
    for gpu in dict.fromkeys(case.machine.env.gpus or ()):
        words = {"version": torch.version, "gpu": gpu}
        if gpu.capability is None or runs(gpu.capability, sass, ()):
            continue
        late = newest_ptx(case, files.isa) if files is not None and files.isa else None
        if not runs(gpu.capability, (), ptx):
            code = {"sass": listing(sass), "ptx": listing(ptx)}
            yield found("torch-no-code", **words, **code, command=_other_torch(case, gpu.capability))
        elif late is not None:
            needs, serves = late
            branch = hardware.branch_for(needs) or "of that CUDA"
            yield found("torch-ptx", **words, needs=needs, serves=serves, branch=branch)


def _other_torch(case: Case, capability: str) -> str:
    """A torch that has code for a GPU: the newest one, of the first variant that has."""
    for minor in reversed(list(case.known.torch)):
        row = case.known.torch[minor]
        for tag, targets in row.sm.items():
            names = [one.name.replace(".", "") for one in targets]
            if runs(capability, names, [one.name.replace(".", "") for one in targets if one.ptx]):
                return f"{case.pip} --force-reinstall 'torch=={minor}.*' --index-url {case.index(tag)}"
    return "no torch of the tables has code for it: build torch from source"


def toolkit(case: Case) -> Iterator[Finding]:
    kits = case.machine.toolkits
    torch = case.torch
    wanted = torch.cuda if torch is not None and torch.major is not None else None
    if kits.chosen is None:
        yield from _none(case, kits, wanted)
        return
    chosen = kits.chosen
    if chosen.release is None:
        why = "did not answer within seconds" if chosen.answer == "hangs" else "does not say its release"
        yield found("nvcc-broken", nvcc=chosen.path, why=why, command=case.use(wanted, but=chosen))
        return
    yield from _complete(case, kits, chosen, wanted)
    yield from _against_torch(case, chosen)
    yield from _others(case, kits, chosen, wanted)
    row = case.toolkit
    for capability in case.capabilities if row is not None else ():
        if row is not None and capability not in row.names:
            low, high = oldest_and_newest(row)
            number = capability.replace(".", "")
            words = {"have": row.minor, "gpu": capability, "low": low, "high": high, "number": number}
            yield found("nvcc-gpu", **words, command=case.use(_compiling(case, capability), but=chosen))


def _compiling(case: Case, capability: str) -> str | None:
    """The newest CUDA whose compiler knows a GPU, of torch's own major where that has one."""
    rows = [row for row in case.known.cuda.values() if capability in row.names]
    major = case.torch.major if case.torch else None
    own = [row for row in rows if row.minor.partition(".")[0] == str(major)]
    return (own or rows)[-1].minor if rows else None


def _none(case: Case, kits: Toolkits, wanted: str | None) -> Iterator[Finding]:
    if kits.home is not None and kits.origin in ("CUDA_HOME", "CUDA_PATH"):
        command = case.use(wanted)
        if command.startswith("install") and not kits.nvccs:
            command = f"unset {kits.origin}; {command}"
        yield found("cuda-home-wrong", variable=kits.origin, home=kits.home, command=command)
        return
    looked = "neither CUDA_HOME, PATH nor /usr/local/cuda leads to one"
    if kits.nvccs:
        looked += f", where builds look; {listing(one.path for one in kits.nvccs)} is here"
    yield found("nvcc-absent", looked=looked, command=case.use(wanted))


def _complete(case: Case, kits: Toolkits, chosen: Nvcc, wanted: str | None) -> Iterator[Finding]:
    if chosen.headers:
        return
    better = wanted or chosen.release
    if kits.origin == "PATH":
        command = case.use(better, but=chosen)
        yield found("cuda-home-guessed", nvcc=chosen.path, home=kits.home, command=command)
    else:
        yield found("cuda-home-headers", home=chosen.home, command=case.use(better, but=chosen))


def _against_torch(case: Case, chosen: Nvcc) -> Iterator[Finding]:
    torch = case.torch
    if torch is None or torch.major is None or chosen.release in (None, torch.cuda):
        return
    same = chosen.release is not None and chosen.release.partition(".")[0] == str(torch.major)
    words = {"nvcc": chosen.path, "have": chosen.release, "version": torch.version, "wanted": torch.cuda}
    command = case.use(torch.cuda, but=chosen, exact=same)
    if same and command.startswith("install"):
        command = f"nothing, as a rule; for the very same: {command}"
    yield found("nvcc-minor" if same else "nvcc-major", **words, command=command)


def _others(case: Case, kits: Toolkits, chosen: Nvcc, wanted: str | None) -> Iterator[Finding]:
    """Another nvcc that a build system may take: PATH's first; and where no torch decides, the default's."""
    first = next((one for one in kits.nvccs if one.origin == "PATH"), None)
    default = next((one for one in kits.nvccs if one.home == "/usr/local/cuda"), None)
    for other in (first, default if wanted is None else None):
        if other is not None and other.release and other.release != chosen.release:
            better = case.use(wanted) if wanted else exported(chosen.home)
            if wanted is None:
                better += f", or the same with {other.home}"
            words = {"nvcc": chosen.path, "have": chosen.release, "other": other.path, "its": other.release}
            yield found("nvcc-several", **words, origin=_where(other), command=better)
            return


def _where(nvcc: Nvcc) -> str:
    return "first on PATH" if nvcc.origin == "PATH" else "where builds look by default"


def arch_list(case: Case) -> Iterator[Finding]:
    text = case.machine.toolkits.arch_list
    env = case.machine.env
    if not text or text == "native":
        if not case.capabilities and env.gpus is not None:
            yield found("arch-list-unset", "error" if _needs_list(case.project) else None, best=case.best_list)
        return
    for name, words in case.known.arch_names.items():
        text = text.replace(name, words)
    targets = [(word, arch.parse(word)) for word in arch.split(text)]
    wrong = next((word for word, target in targets if target is None), None)
    stated = case.machine.toolkits.arch_list
    if wrong is not None or not targets:
        yield found("arch-list-wrong", list=stated, word=wrong or "nothing", best=case.best_list)
        return
    known = [target for _, target in targets if target is not None]
    row = case.toolkit
    unknown = next((one for one in known if row is not None and one.name not in row.names), None)
    if row is not None and unknown is not None:
        low, high = oldest_and_newest(row)
        yield found("arch-list-toolkit", word=unknown.name, have=row.minor, low=low, high=high, best=case.best_list)
    sass = [one.name.replace(".", "") for one in known]
    ptx = [one.name.replace(".", "") for one in known if one.ptx]
    for gpu in dict.fromkeys(env.gpus or ()):
        if gpu.capability and not runs(gpu.capability, sass, ptx):
            yield found("arch-list-gpu", list=stated, gpu=gpu, best=" ".join([*arch.split(text), gpu.capability]))


def _needs_list(project: Project | None) -> bool:
    """Whether torch's build is sure to look for targets: where setup.py has CUDA code and names none itself."""
    pinned = project is not None and any(not one.aside for one in project.architectures)
    return project is not None and project.certain and not project.conditional and not pinned


def newest_ptx(case: Case, isa: tuple[int, int]) -> tuple[str, str] | None:
    """(the CUDA whose driver reads that PTX, what this driver serves) where this driver is older."""
    serves = case.machine.env.driver.serves if case.machine.env.driver else None
    needs = hardware.cuda_of_isa("{}.{}".format(*isa))
    return (needs, serves) if serves and older(serves, needs) else None
