"""Checks of the NVIDIA driver and of the GPUs. Facts → findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelmill import hardware
from wheelmill.doctor_case import older, runs
from wheelmill.doctor_findings import Finding, found
from wheelmill.doctor_rules_access import SMI_MEND, access, said_mend
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.doctor_case import Case
    from wheelmill.doctor_facts import Program
    from wheelmill.which_env import Torch

SMI_SECONDS = 20.0
SAID = 300


def driver(case: Case) -> Iterator[Finding]:
    env, smi = case.machine.env, case.machine.smi
    if smi is not None and smi.answer == "hangs":
        yield found("driver-hangs", program=smi.path, seconds=SMI_SECONDS)
        return
    # What keeps this process from the GPU makes nvidia-smi fail too.
    kept = access(case)
    if kept is not None:
        yield kept
    if smi is not None and smi.answer == "fails" and not kept:
        yield _smi(smi)
    if env.driver is None or (env.driver.version is None and env.driver.cuda is None):
        if not kept and (smi is None or smi.answer == "works"):
            pci = case.machine.system.pci
            yield found("driver-unloaded", slots=listing(pci, limit=8)) if pci else found("driver-absent")
        return
    torch = case.torch
    serves = env.driver.serves
    if torch is not None and torch.major is not None and serves and int(serves.partition(".")[0]) < torch.major:
        yield _old(case, torch, serves)
    if not kept:
        yield from _gpus(case)


def _smi(smi: Program) -> Finding:
    command = said_mend(smi) or SMI_MEND
    said = " ".join(smi.said[:SAID].split()) or "nothing is said"
    return found("driver-fails", program=smi.path, status=smi.status, said=said, command=command)


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
    if env.gpus is None or (env.driver and env.driver.cuda is None):
        version = env.driver.version if env.driver else None
        yield found("driver-mute", version=version or "of unknown version")
        return
    if not env.gpus:
        hidden = system.visible is not None
        why = f": CUDA_VISIBLE_DEVICES is {system.visible!r}" if hidden else ""
        command = "unset CUDA_VISIBLE_DEVICES" if hidden else "nvidia-smi -L"
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


def newest_ptx(case: Case, isa: tuple[int, int]) -> tuple[str, str] | None:
    """(the CUDA whose driver reads that PTX, what this driver serves) where this driver is older."""
    serves = case.machine.env.driver.serves if case.machine.env.driver else None
    needs = hardware.cuda_of_isa("{}.{}".format(*isa))
    return (needs, serves) if serves and older(serves, needs) else None
