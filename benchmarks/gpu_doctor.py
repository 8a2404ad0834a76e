"""Tries `wheelmill doctor` on a machine with a GPU, and holds what it finds to what torch and CUDA then do there.

    python gpu_doctor.py --python "$(command -v python3)" --out doctor.json

Needs wheelmill, nvcc, a container engine that can give the GPU, and an interpreter with torch; no network. The
containers are of an image that holds nothing but folders and links, over this machine's own files, read-only: given
the GPU or not, and with the files of its driver or with nothing in their places. Exits with 1 unless each case has the
findings that it must have, and no other of the driver and the package, and what they say will happen does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_gates import PASSED, hosted_image

import wheelmill
from wheelmill import doctor_machine, doctor_torch, engine, gates_box

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from docker import DockerClient

SOURCE = Path(wheelmill.__file__).parents[1]
STATED = ("TORCH_CUDA_ARCH_LIST", "CUDA_VISIBLE_DEVICES")
SECONDS = 240
AREAS = ("driver", "package")
# Runs beside the doctor, in the same place: what is there in truth.
TRUTH = """
import importlib, json, sys, torch
told = {"available": torch.cuda.is_available(), "gpus": [], "said": None}
for index in range(torch.cuda.device_count() if told["available"] else 0):
    major, minor = torch.cuda.get_device_capability(index)
    told["gpus"].append([torch.cuda.get_device_name(index), f"{major}.{minor}"])
try:
    if len(sys.argv) > 1:
        importlib.import_module(sys.argv[1]).launch()
    else:
        assert torch.ones(3, device="cuda").sum().item() == 3
except Exception as error:
    told["said"] = (str(error).splitlines() or [type(error).__name__])[0]
told["targets"] = torch.cuda.get_arch_list()
print("TRUTH" + json.dumps(told))
"""
KERNEL = """
#include <cuda_runtime.h>
__global__ void set(int* out) { *out = 42; }
extern "C" __attribute__((visibility("default"))) const char* launch() {
  int value = 0, *out = nullptr;
  cudaError_t error = cudaMalloc(&out, sizeof(int));
  if (error == cudaSuccess) { set<<<1, 1>>>(out); error = cudaGetLastError(); }
  if (error == cudaSuccess) error = cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost);
  return error != cudaSuccess ? cudaGetErrorString(error) : value == 42 ? "" : "a wrong value";
}
"""
MODULE = """
import ctypes, pathlib

def launch():
    call = ctypes.CDLL(str(pathlib.Path(__file__).with_name("kernel.so"))).launch
    call.restype = ctypes.c_char_p
    if said := call().decode():
        raise RuntimeError(said)
"""
# A package's name, and nvcc's words for its code.
PACKAGES = {
    "only_sm75": "-gencode=arch=compute_75,code=sm_75",
    "ptx_of_75": "-gencode=arch=compute_75,code=compute_75",
}


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A case: what the doctor must find of the driver and the package, and whether CUDA works there in truth.

    `said` is of the error that torch, or the package's kernel, ends with. `devices` are what a container is given in
    place of all GPUs by CDI, and `bound` device files that are only mounted; `driver` is whether it sees the driver's.
    """

    findings: tuple[str, ...] = ()
    said: str = ""
    container: bool = False
    gpu: bool = True
    devices: tuple[str, ...] = ()
    bound: tuple[str, ...] = ()
    driver: bool = True
    package: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)


NO_CODE = "no kernel image is available"
NO_GPU = "No CUDA GPUs are available"
NO_DRIVER = "Found no NVIDIA driver"
CARD, CONTROL, MEMORY = "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"
CASES = {
    "host": Tried(),
    "host, `CUDA_VISIBLE_DEVICES=`": Tried(findings=("gpu-none",), said=NO_GPU, env={"CUDA_VISIBLE_DEVICES": ""}),
    "host, `TORCH_CUDA_ARCH_LIST=8.0`": Tried(findings=("arch-list-gpu",), env={"TORCH_CUDA_ARCH_LIST": "8.0"}),
    "host, `TORCH_CUDA_ARCH_LIST=8.0+PTX`": Tried(env={"TORCH_CUDA_ARCH_LIST": "8.0+PTX"}),
    "host, a package of SASS 7.5": Tried(findings=("package-no-code",), said=NO_CODE, package="only_sm75"),
    "host, a package of PTX 7.5": Tried(package="ptx_of_75"),
    "container, all GPUs": Tried(container=True),
    "container, all GPUs, a package of SASS 7.5": Tried(
        findings=("package-no-code",), said=NO_CODE, container=True, package="only_sm75"
    ),
    "container, no GPU": Tried(findings=("gpu-not-given",), said=NO_DRIVER, container=True, gpu=False, driver=False),
    "container, no GPU, the driver's files": Tried(findings=("gpu-not-given",), said=NO_GPU, container=True, gpu=False),
    "container, all GPUs, no files of the driver": Tried(
        findings=("driver-files",), said=NO_DRIVER, container=True, driver=False
    ),
    "container, no `/dev/nvidia-uvm`": Tried(
        findings=("driver-uvm",), said="CUDA unknown error", container=True, devices=(CARD, CONTROL)
    ),
    "container, device files that it may not open": Tried(
        findings=("gpu-refused",), said=NO_GPU, container=True, gpu=False, bound=(CARD, CONTROL, MEMORY)
    ),
}


def packages(folder: Path) -> None:
    """Make the packages, as an installer leaves them in a folder."""
    source = folder / "kernel.cu"
    source.write_text(KERNEL)
    for name, target in PACKAGES.items():
        package, about = folder / name, folder / f"{name}-1.0.dist-info"
        package.mkdir()
        about.mkdir()
        command = ["nvcc", "-shared", "-Xcompiler=-fPIC", target, "-o", str(package / "kernel.so"), str(source)]
        subprocess.run(command, check=True)
        (package / "__init__.py").write_text(MODULE)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: torch\n")
        (about / "RECORD").write_text(f"{name}/__init__.py,,\n{name}/kernel.so,,\n{name}-1.0.dist-info/METADATA,,\n")


def commands(case: Tried, options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """(the doctor's command, the one that tells the truth)."""
    asked = ["--package", case.package] if case.package else []
    doctor = [sys.executable, "-m", "wheelmill", "doctor", "--json", "--python", str(options.python), *asked]
    return doctor, [str(options.python), "-c", TRUTH, *asked[1:]]


def on_host(command: Sequence[str], variables: Mapping[str, str]) -> tuple[str, str]:
    """What a command prints and says on this machine."""
    env = {name: value for name, value in os.environ.items() if name not in STATED} | dict(variables)
    done = subprocess.run(command, env=env, text=True, capture_output=True, timeout=SECONDS, check=False)
    return done.stdout, done.stderr


@dataclass(frozen=True, kw_only=True)
class Box:
    """The engine, its request for the GPUs, the image, and the folders that its containers see, read-only."""

    client: DockerClient
    request: Any
    image: str
    folders: tuple[Path, ...]


def make_box(folders: tuple[Path, ...]) -> Box:
    """Ends the program where the engine can give no GPU."""
    client = engine.connect()
    request, refused = gates_box.gpu_request(client.info())
    if refused:
        sys.exit(f"{refused['reason']}: {refused['remedy']}")
    return Box(client=client, request=request, image=hosted_image(), folders=folders)


def in_container(command: Sequence[str], variables: Mapping[str, str], case: Tried, box: Box) -> tuple[str, str]:
    """What it prints and says in a container that may do nothing but look."""
    volumes = [f"{one}:{one}:ro" for one in box.folders] + [f"{one}:{one}" for one in case.bound]
    volumes += [] if case.driver else [f"/dev/null:{one}:ro" for one in driver_files()]
    container = box.client.containers.run(
        box.image,
        list(command),
        detach=True,
        cap_drop=["ALL"],
        device_requests=[box.request] if case.gpu and not case.devices else [],
        devices=[f"{one}:{one}:rwm" for one in case.devices],
        environment={**{name: os.environ[name] for name in PASSED if name in os.environ}, **variables},
        network_mode="none",
        read_only=True,
        security_opt=["no-new-privileges"],
        tmpfs={"/tmp": ""},  # noqa: S108
        volumes=volumes,
    )
    try:
        container.wait(timeout=SECONDS)
        return container.logs(stderr=False).decode(), container.logs(stdout=False).decode()
    finally:
        container.remove(force=True)


def driver_files() -> list[str]:
    """The files by which programs reach the driver: its library wherever the loader looks, and nvidia-smi."""
    folders = doctor_torch.folders(doctor_machine.ldconfig(), os.environ, (), None)
    found = [folder / "libcuda.so.1" for folder in folders] + [Path(shutil.which("nvidia-smi") or "nvidia-smi")]
    return sorted({str(one.resolve()) for one in found if one.is_file()})


def of_gpu(told: Mapping[str, Any]) -> dict[str, str]:
    """The findings of the driver, the package and the GPU, with their severities."""
    every = told["findings"]
    return {one["id"]: one["severity"] for one in every if one["area"] in AREAS or one["id"] == "arch-list-gpu"}


def compare(case: Tried, told: Mapping[str, Any], truth: Mapping[str, Any]) -> list[str]:
    """What is not as it must be."""
    found = of_gpu(told)
    wrong = [] if sorted(found) == sorted(case.findings) else [f"found {list(found)}, not {list(case.findings)}"]
    # A list of targets is of what is built later.
    kept = [one for one in case.findings if one != "arch-list-gpu"]
    if (truth["said"] is not None) != bool(kept) or case.said not in (truth["said"] or ""):
        wrong.append(f"in truth: {truth['said'] or 'it works'}")
    environment = told["environment"]
    seen = [[one["name"], one["capability"]] for one in environment["gpus"] or ()]
    # nvidia-smi may tell of GPUs that CUDA cannot start on.
    if seen != truth["gpus"] and not environment["driver"]["fails"]:
        wrong.append(f"GPUs {seen}, not {truth['gpus']}")
    if not environment["driver"]["version"]:
        wrong.append("the driver's version is not known")
    # Some of torch's files are for more targets than it states.
    read = {f"sm_{one}" for one in told["torch"]["sass"]} | {f"compute_{one}" for one in told["torch"]["ptx"]}
    if lacking := set(truth["targets"]) - read:
        wrong.append(f"torch's code for {sorted(lacking)} was not seen")
    return wrong


def shown(rows: Mapping[str, Any]) -> str:
    """A table for people."""
    lines = ["| where | what it finds | what torch, or the package's kernel, says |", "|---|---|---|"]
    for name, row in rows.items():
        found = ", ".join(f"`{one}`" for one in row["findings"])
        lines.append(f"| {name} | {found or 'nothing'} | {row['said'] or 'it works'} |")
    return "\n".join(lines)


def tried(case: Tried, options: argparse.Namespace, path: list[str], box: Box) -> dict[str, Any]:
    """A row of the table: what was found, what is so in truth, and what of it is wrong."""
    variables = {"PYTHONPATH": ":".join(path), **case.env}
    doctor, truth = (
        in_container(one, variables, case, box) if case.container else on_host(one, variables)
        for one in commands(case, options)
    )
    try:
        told, so = json.loads(doctor[0]), json.loads(truth[0].partition("TRUTH")[2])
    except ValueError:
        sys.exit(f"no answer: {doctor} {truth}")
    return {
        "findings": of_gpu(told),
        "said": so["said"],
        "gpus": told["environment"]["gpus"],
        "driver": told["environment"]["driver"],
        "torch": told["environment"]["torch"]["version"],
        "wrong": compare(case, told, so),
    }


def main() -> int:
    """0 where every case is as it must be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=Path, required=True, help="an interpreter with torch")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.python = Path(os.path.abspath(options.python))  # noqa: PTH100 - an environment is where its link is
    with tempfile.TemporaryDirectory() as name:
        path = [name, str(SOURCE), *filter(None, os.environ.get("PYTHONPATH", "").split(":"))]
        wanted = {Path(one) for one in ("/usr", "/etc", "/opt", *path)}
        for program in (options.python, Path(sys.executable)):
            wanted |= {program.parents[1], program.resolve().parents[1]}
        inner = {one for one in wanted for two in wanted if one != two and one.is_relative_to(two)}
        box = make_box(tuple(sorted(one for one in wanted - inner if one.is_dir())))
        packages(Path(name))
        rows = {label: tried(case, options, path, box) for label, case in CASES.items()}
    options.out.write_text(json.dumps({"version": 1, "cases": rows}, indent=1) + "\n")
    print(shown(rows))
    wrong = [f"{label}: {why}" for label, row in rows.items() for why in row["wrong"]]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
