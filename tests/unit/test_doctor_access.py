"""What the doctor says keeps a process from GPUs that are there, on machines and in containers of many kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from wheelmill import doctor
from wheelmill.doctor_case import Case
from wheelmill.doctor_facts import Program

from .test_doctor import H200, MUTE, NODES, failing, machine

if TYPE_CHECKING:
    from wheelmill.doctor_findings import Finding
    from wheelmill.facts import Facts
    from wheelmill.which_env import Driver

BOX: dict[str, Any] = {"container": True, "nodes": {}}
UNKNOWN = failing("CUDA_ERROR_UNKNOWN (999)")
SERVING = MUTE.model_copy(update={"cuda": "13.0"})
OTHERS = NODES | {f"/dev/nvidia{number}": "" for number in range(1, 8)}
SILENT = Program(path="nvidia-smi", answer="fails", status=9, said="couldn't communicate with the NVIDIA driver")


def told(known: Facts, *, driver: Driver, gpus: Any = None, smi: Program | None = SILENT, **system: Any) -> Finding:
    """The one finding of the driver and the GPUs."""
    wsl = system.pop("wsl", False)
    env = {"driver": driver, "gpus": gpus, "wsl": wsl}
    case = Case(machine=machine(env=env, smi=smi, system=system), known=known)
    (found,) = (one for one in doctor.judge(case) if one.id.startswith(("driver", "gpu")))
    return found


@pytest.mark.parametrize(
    ("facts", "check", "words"),
    [
        # A container that was given no GPU, whatever else it has.
        ({"driver": MUTE, **BOX}, "gpu-not-given", "docker run --device"),
        ({"driver": SERVING, "gpus": (), **BOX}, "gpu-not-given", "docker run --device"),
        ({"driver": MUTE, "container": True, "nodes": {"/dev/nvidiactl": None}}, "gpu-not-given", "nvidia.com/gpu"),
        ({"driver": failing("X (803)"), **BOX}, "gpu-not-given", "in Kubernetes"),
        ({"driver": MUTE, "apptainer": True, **BOX}, "gpu-not-given", "apptainer exec --nv"),
        # Device files that may not be opened: by their mode, or by what keeps devices from a job or a container.
        ({"driver": UNKNOWN, "nodes": NODES | {"/dev/nvidia0": "render"}}, "gpu-refused", "usermod -aG render"),
        ({"driver": UNKNOWN, "nodes": NODES | {"/dev/nvidia0": ""}}, "gpu-refused", "srun --gres=gpu:1"),
        ({"driver": UNKNOWN, "container": True, "nodes": dict.fromkeys(NODES, "")}, "gpu-refused", "docker run"),
        (
            {"driver": UNKNOWN, "container": True, "nodes": dict.fromkeys(NODES, "vgl")},
            "gpu-refused",
            "--group-add vgl",
        ),
        # Of eight cards seven are others' jobs'.
        ({"driver": failing("CUDA_ERROR_SYSTEM_NOT_READY (802)"), "nodes": OTHERS}, "driver-cuda", "fabricmanager"),
        ({"driver": SERVING, "gpus": (), "smi": None, "nodes": OTHERS, "visible": ""}, "gpu-none", "unset CUDA_VIS"),
        # nvidia-smi needs no libcuda and no nvidia-uvm.
        ({"driver": MUTE, "gpus": (H200,), "smi": None, "linux_driver": None}, "driver-files", "libnvidia-compute-580"),
        (
            {"driver": MUTE, "gpus": (H200,), "linux_driver": None, "container": True, "capabilities": "utility"},
            "driver-files",
            "compute,utility (it is utility)",
        ),
        (
            {"driver": MUTE, "linux_driver": None, "container": True, "capabilities": ""},
            "driver-files",
            "(it is empty)",
        ),
        ({"driver": MUTE, "linux_driver": None, "container": True, "capabilities": "all"}, "driver-files", "in place"),
        ({"driver": MUTE, "linux_driver": None, "container": True, "apptainer": True}, "driver-files", "exec --nv"),
        ({"driver": UNKNOWN, "gpus": (H200,), "nodes": {"/dev/nvidia0": None}}, "driver-uvm", "nvidia-modprobe"),
        ({"driver": SERVING, "gpus": (), "nodes": {"/dev/nvidia0": None}}, "driver-nodes", "nvidia-modprobe"),
        ({"driver": SERVING, "gpus": (), "nodes": {}}, "driver-nodes", "nvidia-modprobe"),
        # The library is there and does not start, or does not answer.
        ({"driver": UNKNOWN}, "driver-cuda", "dmesg"),
        ({"driver": UNKNOWN, "nodes": {"/dev/nvidia0": None, "/dev/nvmap": None}}, "driver-cuda", "dmesg"),
        ({"driver": failing("X (802)"), "gpus": (H200,), "nodes": {}}, "driver-cuda", "nvidia-fabricmanager"),
        ({"driver": failing("CUDA_ERROR_STUB_LIBRARY (34)")}, "driver-cuda", "stubs"),
        ({"driver": failing("X (804)"), "gpus": (H200,), "wsl": True}, "driver-cuda", "cuda-compat"),
        ({"driver": UNKNOWN, "wsl": True}, "driver-cuda", "wsl --update"),
        ({"driver": MUTE, "gpus": (H200,), "smi": None}, "driver-mute", "dmesg"),
    ],
)
def test_what_keeps_a_process_from_the_gpu_is_told_once(
    known: Facts, facts: dict[str, Any], check: str, words: str
) -> None:
    """nvidia-smi and the driver's library fail by it too."""
    found = told(known, **facts)
    assert found.id == check
    assert words in found.mend


@pytest.mark.parametrize(
    ("said", "words"), [("Driver/library version mismatch", "restart the machine"), ("Unknown Error", "by CDI")]
)
def test_what_nvidia_smi_says_tells_more_than_cuinit(known: Facts, said: str, words: str) -> None:
    smi = Program(path="nvidia-smi", answer="fails", status=255, said=f"Failed to initialize NVML: {said}")
    for driver, nodes in ((failing("X (803)"), NODES), (UNKNOWN, dict.fromkeys(NODES, ""))):
        assert words in told(known, driver=driver, smi=smi, nodes=nodes, container=True).mend


def test_a_scheduler_that_gave_no_gpu_hinders_no_build(known: Facts) -> None:
    assert told(known, driver=UNKNOWN, nodes=dict.fromkeys(NODES, "")).severity == "warning"


@pytest.mark.parametrize("system", [{}, BOX, {"nodes": OTHERS}, {"linux_driver": None}, {"container": True}])
def test_nothing_is_told_where_a_gpu_answers(known: Facts, system: dict[str, Any]) -> None:
    assert doctor.judge(Case(machine=machine(system=system), known=known)) == ()
