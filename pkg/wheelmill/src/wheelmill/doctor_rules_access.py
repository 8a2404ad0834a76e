"""Checks of what keeps a process from GPUs whose driver is in the kernel. Facts → findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from wheelmill.doctor_findings import Finding, found
from wheelmill.names import listing

if TYPE_CHECKING:
    from wheelmill.doctor_case import Case
    from wheelmill.doctor_facts import Program, System
    from wheelmill.findings import Severity
    from wheelmill.which_env import Driver

# What nvidia-smi says, and what mends it.
SMI_MENDS = {
    "version mismatch": "restart the machine: its kernel runs another driver version than is installed",
    "unknown error": "restart the container, whose device group was reset; give it GPUs by CDI: docker run --device "
    "nvidia.com/gpu=all",
}
SMI_MEND = "modprobe nvidia; nvidia-smi; dmesg | grep -i -e xid -e nvrm"
# What the driver's library ends with, and what mends it (cuda.h: CUresult).
CUDA_MENDS = {
    34: "take the toolkit's folder `stubs` out of LD_LIBRARY_PATH: what lies there is to link with",
    802: "systemctl start nvidia-fabricmanager, of the driver's very version: its GPUs are joined by NVSwitch",
    803: "take cuda-compat's folder out of LD_LIBRARY_PATH, or restart the machine: its kernel runs another driver "
    "than the library is of",
    804: "take cuda-compat's folder out of LD_LIBRARY_PATH: only data centre GPUs take it; or install a newer driver",
}
# By which CUDA reaches GPUs, besides a node each; Tegra has others.
CONTROL, UVM, TEGRA = "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvmap"
CARD = re.compile(r"/dev/nvidia\d+")
REGIVE = (
    "docker run --device nvidia.com/gpu=all, or --gpus all (with Podman and SELinux also --security-opt=label=disable)"
)

SCHEDULER = "ask the job scheduler for a GPU (srun --gres=gpu:1): it keeps it from others"


def access(case: Case) -> Finding | None:
    """What keeps this process from the GPU; None where nothing is known to."""
    env, system = case.machine.env, case.machine.system
    driver = env.driver
    if driver is None or (driver.version is None and driver.fails is None):
        return None
    if env.gpus and driver.cuda and not driver.fails:
        return None
    version = driver.version or "of unknown version"
    if not env.wsl and TEGRA not in system.nodes and (one := _nodes(case, driver, version)):
        return one
    if not driver.fails:
        return None
    last = "wsl --update (in Windows)" if env.wsl else SMI_MEND
    own = next((mend for code, mend in CUDA_MENDS.items() if f"({code})" in driver.fails), last)
    return found("driver-cuda", version=version, fails=driver.fails, command=said_mend(case.machine.smi) or own)


def said_mend(smi: Program | None) -> str | None:
    """What mends that which nvidia-smi says, where its words are known."""
    low = smi.said.lower() if smi is not None and smi.answer == "fails" else ""
    return next((mend for words, mend in SMI_MENDS.items() if words in low), None)


def _nodes(case: Case, driver: Driver, version: str) -> Finding | None:
    """By the driver's device files and its library."""
    system = case.machine.system
    cards = [name for name in system.nodes if CARD.fullmatch(name)]
    if system.container and not cards:
        mend = "apptainer exec --nv" if system.apptainer else REGIVE
        return found("gpu-not-given", version=version, command=mend)
    # Of several cards a job or a container may have some.
    closed = [name for name in cards if system.nodes[name] is not None]
    shut = [name for name in (CONTROL, UVM) if system.nodes.get(name) is not None]
    shut += closed if closed == cards else []
    if shut:
        return _refused(case, shut)
    if driver.cuda is None and driver.fails is None and not system.linux_driver:
        return found("driver-files", version=version, command=_files(system, version))
    load = "sudo nvidia-modprobe -c 0 -u, which makes the device files"
    command = f"on the machine: {load}; then {REGIVE}" if system.container else load
    if not case.machine.env.gpus and CONTROL not in system.nodes:
        return found("driver-nodes", node=CONTROL, command=command)
    if driver.fails and cards and UVM not in system.nodes:
        return found("driver-uvm", command=command)
    return None


def _refused(case: Case, shut: list[str]) -> Finding:
    """Where the modes of the files would let this process in, something else keeps it out."""
    system = case.machine.system
    groups = sorted({why for name in shut if (why := system.nodes[name])})
    if groups:
        own = f"sudo usermod -aG {groups[0]} $USER, then log in again"
        own = f"in the container: --group-add {groups[0]}; on the machine: {own}" if system.container else own
    else:
        own = REGIVE if system.container else SCHEDULER
    severity: Severity | None = None if groups or system.container else "warning"
    command = said_mend(case.machine.smi) or own
    return found("gpu-refused", severity, nodes=listing(shut, limit=4), command=command)


def _files(system: System, version: str) -> str:
    """What brings the driver's library."""
    if system.apptainer:
        return "apptainer exec --nv"
    if not system.container:
        branch = version.partition(".")[0]
        return f"apt-get install -y libnvidia-compute-{branch}, or install the driver whole; in a container: {REGIVE}"
    stated = system.capabilities
    if stated is not None and not {"all", "compute"} & {word.strip() for word in stated.split(",")}:
        return f"docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility (it is {stated or 'empty'})"
    return "docker run --gpus all in place of --device /dev/nvidia0: NVIDIA's container toolkit brings the files too"
