"""Runs beside an installed wheel: imports it and computes with it. Standard library and torch alone.

usage: python smoke.py JOB.json RESULT.json

The job names the distribution, its version, its modules, the torch release it must find, and where stated
the operators' namespace and the module of samples. The result says what was found and run, or the error, and `at`
what it was doing, which is written before each part, so that it outlives a crash.

A module of samples offers OPERATORS (name → operator, whose `op` is the overload to call), DTYPES, TOLERANCES
(dtype → rtol, atol), which an operator's own `dtypes` and `tolerances` replace, and samples(operator, device, dtype),
each with `args` and a float64 `reference()`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import platform
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


# The driver's own libraries (libcuda) are always the machine's.
CUDA = re.compile(
    r"lib(cudart|cublas|cublasLt|cudnn|cufft|curand|cusolver|cusparse|nvrtc|nvJitLink|nccl|cupti)[\w.-]*\.so[\w.]*"
)


def operators(torch: Any, namespace: str) -> list[str]:
    """The names of the operators that a namespace registers, without their overloads."""
    names = torch._C._dispatch_get_all_op_names()
    return sorted({name.split("::")[1].split(".")[0] for name in names if name.startswith(namespace + "::")})


def tensors(torch: Any, value: Any) -> list[Any]:
    """Every tensor in an argument list or a result, in order."""
    return [one for one in torch.utils._pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


def called(torch: Any, operator: Any, args: Any) -> list[Any]:
    """The tensors that a call gives; where it returns none, the arguments that its schema says it writes to."""
    results = tensors(torch, operator.op(*args))
    stated = [one.alias_info for one in operator.op._schema.arguments]
    written = [one for one, said in zip(args, stated, strict=False) if said is not None and said.is_write]
    return results or tensors(torch, written)


def compare(torch: Any, actual: list[Any], expected: list[Any], dtype: Any, tolerances: Any) -> None:
    """Hold results against the reference's, as the gate `ops` does: integers exactly. Raises AssertionError."""
    if not expected or len(actual) != len(expected):
        raise AssertionError(f"{len(actual)} results, and the reference gives {len(expected)}")
    for one, other in zip(actual, expected, strict=True):
        if one.is_floating_point() or one.is_complex():
            every = (tolerances[dtype], tolerances.get(one.dtype, tolerances[dtype]))
            rtol, atol = max(pair[0] for pair in every), max(pair[1] for pair in every)
            kind = torch.complex128 if one.is_complex() else torch.float64
        else:
            rtol, atol = 0.0, 0.0
            kind = torch.float64 if other.is_floating_point() else torch.int64
        torch.testing.assert_close(one.to(kind), other.to(kind), rtol=rtol, atol=atol, equal_nan=True)


def compute(torch: Any, module: Any) -> dict[str, int]:
    """Call every operator on every sample on the CPU; the number of calls that gave the reference's values."""
    counts: dict[str, int] = {}
    for name, operator in module.OPERATORS.items():
        counts[name] = 0
        tolerances = getattr(operator, "tolerances", module.TOLERANCES)
        for dtype in getattr(operator, "dtypes", module.DTYPES):
            for number, sample in enumerate(module.samples(operator, "cpu", dtype)):
                expected = tensors(torch, sample.reference())
                try:
                    compare(torch, called(torch, operator, sample.args), expected, dtype, tolerances)
                except AssertionError as error:
                    where = f"{name}, {dtype}, {getattr(sample, 'name', f'sample {number}')}"
                    raise AssertionError(f"{where}: {error}") from error
                counts[name] += 1
    return counts


def borrowed(maps: str, prefix: str) -> list[str]:
    """CUDA's libraries that a process took from outside its environment, where a user need not have them."""
    paths = {path for line in maps.splitlines() for path in line.split(maxsplit=5)[5:]}
    return sorted(path for path in paths if CUDA.fullmatch(path.split("/")[-1]) and not path.startswith(prefix + "/"))


def run(job: dict[str, Any], at: Callable[[str], None]) -> dict[str, Any]:
    at("importing torch")
    import torch

    at("looking at what was installed")
    result = {"python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda}
    found = importlib.metadata.version(job["distribution"])
    if found != job["version"]:
        raise RuntimeError(f"pip installed {job['distribution']} {found} and not {job['version']}")
    if torch.__version__.split("+")[0] != job["torch"]:
        raise RuntimeError(f"the install replaced torch {job['torch']} by {torch.__version__}")
    for name in job["modules"]:
        at(f"importing {name}")
        importlib.import_module(name)
    result["imported"] = job["modules"]
    if job["namespace"]:
        result["operators"] = operators(torch, job["namespace"])
        if not result["operators"]:
            raise RuntimeError(f"the wheel registers no operator under {job['namespace']}::")
    if job["samples"]:
        at("computing")
        result["computed"] = compute(torch, importlib.import_module(job["samples"]))
        unsampled = [name for name in result["operators"] if not result["computed"].get(name)]
        if unsampled:
            raise RuntimeError(f"{job['samples']} gives no sample of {', '.join(unsampled)}")
    foreign = borrowed(Path("/proc/self/maps").read_text(), str(Path(sys.prefix).resolve()))
    if foreign:
        raise RuntimeError(f"it works with {', '.join(foreign)} of this machine, which torch does not bring")
    return result


def main(job_path: str, result_path: str) -> int:
    job = json.loads(Path(job_path).read_text())
    told: dict[str, Any] = {"version": 1, "at": "", "error": None}

    def at(what: str) -> None:
        told["at"] = what
        Path(result_path).write_text(json.dumps(told))

    try:
        result = {**told, **run(job, at), "at": "the end"}
    except Exception as error:
        result = {**told, "error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
    Path(result_path).write_text(json.dumps(result, indent=1))
    return 0 if result["error"] is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
