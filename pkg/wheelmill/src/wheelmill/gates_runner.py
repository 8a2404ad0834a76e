"""Runs the dynamic gates beside an installed wheel. Standard library and torch alone, and pytest for its gate.

usage: python gates_runner.py --drive JOB.json OUT [--fresh]       every unit, each in a process of its own
       python gates_runner.py --unit JOB.json UNIT RESULT.json     one unit, in this process

A unit is a gate, an operator, a device and for `sanitize` a tool: `ops/affine/cpu`. The job is what
`wheelmill.gates.job` makes. OUT gets a line a unit in rows.jsonl, a log a unit, and result.json at the end.
The scripts `gates_*.py` lie in one folder, which need not be on the module path.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import importlib.util
import json
import os
import sys
import sysconfig
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

# The siblings share this very module, whatever it runs as: its exceptions are theirs.
sys.modules.setdefault("gates_runner", sys.modules[__name__])
COMPILERS = ("torch._dynamo", "torch._inductor.compile_fx", "torch.testing._internal.optests")
STARTING, LOADING = "starting the GPU", "importing pytest"
HERE = Path(__file__).resolve().parent
# What a unit does before anything of the operator is called: what goes wrong there is missing here, and no fault of it.
BEFORE = ("starting", "importing torch", STARTING, LOADING)
# What CUDA says of an error after which the process's device is of no more use. torch adds a word on "device-side
# assertions" to every error.
LOST = (
    "unspecified launch failure",
    "illegal memory access",
    "illegal address",
    "device-side assert triggered",
    "misaligned address",
    "illegal instruction",
    "invalid program counter",
    "operation not supported on global/shared address space",
    "hardware stack error",
    "launch timed out",
    "uncorrectable ECC error",
    "GPU is lost",
)
# The disk or the quota is full.
FULL = (errno.ENOSPC, errno.EDQUOT)
# What CUDA says of a launch that it refuses: in an operator's message this is no refusal of the operator's own.
REFUSED_LAUNCH = (
    "CUDA error",
    "CUDA driver error",
    "invalid configuration argument",
    "invalid device function",
    "invalid resource handle",
    "no kernel image is available",
    "too many resources requested for launch",
)


def said_by_cuda(message: str) -> bool:
    """Whether an operator's error is in CUDA's words, of a launch refused or of a device lost."""
    # As the last words of a line, "invalid argument" names no argument: it is what CUDA says of an invalid value.
    first = message.strip().partition("\n")[0].rstrip(" .")
    return first.endswith("invalid argument") or any(sign in message for sign in (*REFUSED_LAUNCH, *LOST))


class GateFault(Exception):  # noqa: N818 - what is wrong with an operator, not with this program
    """The operator does not pass; the message says why."""


@dataclass(kw_only=True)
class Unit:
    """One unit of work, and what it has told so far. `at` is written at once, so that it outlives a crash."""

    job: dict[str, Any]
    gate: str
    name: str
    device: str
    tool: str
    torch: Any
    samples: Any
    at: Callable[[str], None]
    found: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    @property
    def operator(self) -> Any:
        """The operator as the samples' module describes it."""
        return self.samples.OPERATORS[self.name]

    @property
    def dtypes(self) -> list[Any]:
        """The dtypes to sample: the operator's own or the module's, and complex128 where it says that it takes it."""
        extra = [self.torch.complex128] if getattr(self.operator, "complex", False) else []
        return list(dict.fromkeys([*getattr(self.operator, "dtypes", self.samples.DTYPES), *extra]))

    @property
    def dtype(self) -> Any:
        """The dtype of what is done in one alone: float32, or of an operator that does not take it the first."""
        return self.torch.float32 if self.torch.float32 in self.dtypes else self.dtypes[0]

    def drawn(self, dtype: Any, device: str | None = None) -> list[tuple[str, Any]]:
        """(name, sample) of every sample of one dtype."""
        drawn = self.samples.samples(self.operator, device or self.device, dtype)
        return [(getattr(one, "name", f"sample {number}"), one) for number, one in enumerate(drawn)]

    def leave_out(self, what: str) -> None:
        if what not in self.left_out:
            self.left_out.append(what)


def sibling(name: str) -> ModuleType:
    """Another script of this folder, which is not on the path: it may hold names like an extension's own."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{HERE} has no {name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def prepare(job: dict[str, Any]) -> None:
    """Find the installed wheel and nothing of this folder."""
    sys.path[:] = [path for path in sys.path if path and Path(path).resolve() != HERE]
    sys.path[:0] = [path for path in job["paths"] if path not in sys.path]


def check_place(job: dict[str, Any]) -> dict[str, str]:
    """Import the wheel's modules and return where they lie. Raises GateFault for one of a source tree."""
    folders = [Path(path).resolve() for path in job["paths"]] or [
        Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")
    ]
    places = {}
    for name in job["modules"]:
        module = importlib.import_module(name)
        spec = module.__spec__
        place = Path(module.__file__ or next(iter(spec.submodule_search_locations or ()), "") if spec else "").resolve()
        if not any(folder in place.parents for folder in folders):
            raise GateFault(f"{name} was imported from {place}, which is not the installed wheel's")
        places[name] = str(place)
    return places


def registered(torch: Any, namespace: str) -> list[str]:
    """The operators of a namespace, without their overloads."""
    names = torch._C._dispatch_get_all_op_names()
    return sorted({name.split("::")[1].split(".")[0] for name in names if name.startswith(namespace + "::")})


def has_kernel(torch: Any, namespace: str, name: str, device: str) -> bool:
    """Whether any overload has a kernel for that device, its own or a composite one."""
    full = [
        one
        for one in torch._C._dispatch_get_all_op_names()
        if one.split("::")[0] == namespace and one.split("::")[1].split(".")[0] == name
    ]
    has = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    return any(has(one, device.upper()) for one in full)


def probe(job: dict[str, Any], at: Callable[[str], None]) -> dict[str, Any]:
    """What is here: releases, where the wheel lies, its operators, GPUs."""
    import platform

    at("importing torch")
    import torch

    at("importing the wheel's modules")
    told: dict[str, Any] = {"python": platform.python_version(), "torch": torch.__version__, "operators": {}}
    told["modules"] = check_place(job)
    told["gpu"] = sibling("gates_gpu").look(torch)
    if job["namespace"]:
        at(f"importing {job['samples']}")
        described = importlib.import_module(job["samples"]).OPERATORS if job["samples"] else {}
        for name in registered(torch, job["namespace"]):
            told["operators"][name] = {
                "sampled": name in described,
                "differentiable": bool(getattr(described.get(name), "differentiable", True)),
                "devices": [one for one in ("cpu", "cuda") if has_kernel(torch, job["namespace"], name, one)],
            }
        told["unregistered"] = sorted(set(described) - set(told["operators"]))
    at("importing what torch.compile needs")
    for name in COMPILERS:  # once here, so that no unit's time goes into their bytecode
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    return told


def spawned(job: dict[str, Any], name: str, device: str, answer: Any) -> None:
    """What a process that was spawned does: the operator's first samples, and the answer through a queue."""
    prepare(job)
    try:
        unit = unit_of(job, f"robust/{name}/{device}", lambda _: None)
        sibling("gates_robust").first_values(unit)
        answer.put(None)
    except Exception as error:
        answer.put(f"{type(error).__name__}: {error}")


def unit_of(job: dict[str, Any], text: str, at: Callable[[str], None]) -> Unit:
    gate, name, device, tool, *_ = [*text.split("/"), ""]
    at("importing torch")
    import torch

    at("importing the wheel's modules")
    check_place(job)
    samples = importlib.import_module(job["samples"]) if job["samples"] else None
    if device == "cuda" and gate != "pytest":
        at(STARTING)
        torch.ones(1, device="cuda").cpu()
    return Unit(job=job, gate=gate, name=name, device=device, tool=tool, torch=torch, samples=samples, at=at)


def run_unit(job: dict[str, Any], text: str, told: dict[str, Any], at: Callable[[str], None]) -> None:
    """Run one unit and put result, reason and findings into `told`."""
    if text == "probe":
        told["found"] = probe(job, at)
        return
    unit = unit_of(job, text, at)
    told["found"], told["left_out"] = unit.found, unit.left_out
    gates: dict[str, Callable[[], None]] = {
        "ops": lambda: sibling("gates_values").ops(unit),
        "gradcheck": lambda: sibling("gates_values").gradcheck(unit),
        "robust": lambda: sibling("gates_robust").robust(unit),
        "sanitize": lambda: sibling("gates_sanitize").calls(unit),
        "bench": lambda: sibling("gates_bench").bench(unit),
        "pytest": lambda: sibling("gates_pytest").project_tests(unit),
    }
    gates[unit.gate]()


def judged(error: Exception) -> tuple[str, str]:
    """(result, reason) of what a unit raised."""
    text = " ".join(str(error).split())
    if any(sign in text for sign in LOST):
        return "crash", f"the device was lost: {text[:600]}"
    if isinstance(error, GateFault):
        return "fail", text[:800]
    return "fail", f"{type(error).__name__}: {text[:600]}"


def write(path: Path, value: object) -> None:
    """Write JSON whole or not at all."""
    beside = path.with_name(path.name + f".{os.getpid()}")
    beside.write_text(json.dumps(value))
    beside.replace(path)


def main_unit(job_path: str, text: str, result_path: str) -> int:
    job = json.loads(Path(job_path).read_text())
    prepare(job)
    told: dict[str, Any] = {"at": "starting", "result": None, "reason": None, "found": {}, "left_out": []}

    def at(what: str) -> None:
        told["at"] = what
        write(Path(result_path), told)

    try:
        run_unit(job, text, told, at)
        told.update(result="pass", at="the end")
    except Exception as error:
        result, reason = judged(error)
        # An earlier unit may have lost the GPU, and a full disk is nobody's fault.
        if told["at"] in BEFORE or (isinstance(error, OSError) and error.errno in FULL):
            result, told["missing"] = "not-run", True
        told.update(result=result, reason=f"{told['at']}: {reason}", trace=traceback.format_exc())
        traceback.print_exc()
    write(Path(result_path), told)
    sys.stdout.flush()
    sys.stderr.flush()
    # Past the destructors of a library that may have been left in a bad state: what counts is written.
    os._exit(0)


def main(argv: list[str]) -> int:
    match argv:
        case ["--unit", job, text, result]:
            return main_unit(job, text, result)
        case ["--drive", job, out, *more] if more in ([], ["--fresh"]):
            code: int = sibling("gates_driver").main(Path(job), Path(out), fresh=bool(more))
            return code
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
