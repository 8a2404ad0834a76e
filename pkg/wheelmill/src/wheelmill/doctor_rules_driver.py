"""Checks of the NVIDIA driver and of the GPUs. Facts → findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wheelmill import hardware
from wheelmill.doctor_case import older, runs
from wheelmill.doctor_findings import Finding, found
from wheelmill.names import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wheelmill.doctor_case import Case
    from wheelmill.doctor_facts import Program
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
# What cuInit ends with, and what mends it (cuda.h: CUresult).
CUDA_MENDS = {
    802: "systemctl start nvidia-fabricmanager, of the driver's very version: its GPUs are joined by NVSwitch",
    803: "take cuda-compat's folder out of LD_LIBRARY_PATH, or restart the machine: its kernel runs another driver "
    "than the library is of",
    804: "take cuda-compat's folder out of LD_LIBRARY_PATH: only data centre GPUs take it; or install a newer driver",
}
# By which CUDA reaches GPUs, besides a node each.
NEEDED = ("/dev/nvidiactl", "/dev/nvidia-uvm")
UVM = NEEDED[1]
CARD = re.compile(r"/dev/nvidia\d+")
REGIVE = "docker run --device nvidia.com/gpu=all, or --gpus all"


def driver(case: Case) -> Iterator[Finding]:
    env, smi = case.machine.env, case.machine.smi
    if smi is not None and smi.answer == "hangs":
        yield found("driver-hangs", program=smi.path, seconds=SMI_SECONDS)
        return
    # What keeps this process from the GPU makes nvidia-smi fail too.
    kept = list(_kept(case))
    yield from kept
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


def _kept(case: Case) -> Iterator[Finding]:
    """What keeps this process from GPUs whose driver is in the kernel: one finding at most."""
    env, system = case.machine.env, case.machine.system
    if env.wsl or env.driver is None or (env.gpus and not env.driver.fails):
        return
    version, fails = env.driver.version or "of unknown version", env.driver.fails
    if env.driver.version is None and not fails:
        return
    cards = [name for name in system.nodes if CARD.fullmatch(name)]
    shut = [name for name, opens in system.nodes.items() if not opens and (name in NEEDED or name in cards)]
    if system.container and not cards and not fails:
        yield found("gpu-not-given", version=version)
    elif shut:
        command = REGIVE if system.container else "sudo usermod -aG video $USER, then log in again (ls -l /dev/nvidia*)"
        yield found("gpu-refused", nodes=listing(shut, limit=4), command=command)
    elif env.driver.cuda is None and not system.linux_driver:
        yield found("driver-files", version=version, command=_files(case))
    elif fails and cards and UVM not in system.nodes:
        load = "nvidia-modprobe -u -c 0 (or modprobe nvidia-uvm)"
        yield found("driver-uvm", command=f"on the machine: {load}; then {REGIVE}" if system.container else load)
    elif fails:
        command = next((mend for code, mend in CUDA_MENDS.items() if f"({code})" in fails), SMI_MEND)
        yield found("driver-cuda", version=version, fails=fails, command=command)


def _files(case: Case) -> str:
    """What brings the driver's library."""
    system = case.machine.system
    version = case.machine.env.driver.version if case.machine.env.driver else None
    if not system.container:
        branch = (version or "").partition(".")[0]
        return f"apt-get install -y libnvidia-compute-{branch}, or install the driver whole; in a container: {REGIVE}"
    stated = system.capabilities
    if stated is not None and not {"all", "compute"} & set(stated.split(",")):
        return f"docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility (it is {stated})"
    return "docker run --gpus all in place of --device /dev/nvidia0: NVIDIA's container toolkit brings the files too"


def _smi(smi: Program) -> Finding:
    low = smi.said.lower()
    command = next((mend for words, mend in SMI_MENDS.items() if words in low), SMI_MEND)
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
    if env.gpus is None:
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
